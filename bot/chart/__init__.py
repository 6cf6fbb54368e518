"""The picture of a digest. Only the process that draws imports more of it than `picture`: that takes tens of megabytes."""
