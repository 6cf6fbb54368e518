"""Watches and decides; knows nothing of Telegram."""
