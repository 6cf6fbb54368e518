"""What calls of Codex CLI come to: equal outputs, heads, failures that another record tells, scripts."""

import json

import pytest

from tests.sources.codex_lines import (
    begin,
    call,
    digest_of,
    direct,
    ended,
    event,
    item,
    meta,
    output,
    read,
    record,
    script,
    scripted,
    sum_of,
    used,
)


def test_equal_outputs_have_equal_digests() -> None:
    """Chunk id, wall time and token count differ each time; test runs tell their own time, too."""
    first = digest_of(call("call_1"), output("call_1", direct("Ran 1 test in 0.001s\nOK\n", chunk="a")))
    again = direct("Ran 1 test in 0.107s\nOK\n", chunk="b", wall="0.1234")
    assert first == digest_of(call("call_2"), output("call_2", again))


def test_outputs_of_scripts_differ_in_their_wall_time() -> None:
    first = digest_of(script("call_1"), scripted("call_1", "ready", wall=0.1))
    assert first == digest_of(script("call_2"), scripted("call_2", "ready", wall=12.5))
    assert first != digest_of(script("call_2"), scripted("call_2", "pending"))


def test_a_script_may_print_the_whole_result_of_a_command() -> None:
    text = '{"chunk_id":"%s","wall_time_seconds":%s,"exit_code":0,"output":"%s"}'
    first = digest_of(script("call_1"), scripted("call_1", text % ("ab12", "0.05", "ready")))
    assert first == digest_of(script("call_2"), scripted("call_2", text % ("cd34", "1.5e-05", "ready")))
    assert first != digest_of(script("call_2"), scripted("call_2", text % ("ab12", "0.05", "pending")))


@pytest.mark.parametrize(
    "text",
    [
        direct("ready", code=1),
        direct("pending"),
        direct("Exit code: 3\nWall time: 0 seconds\nOutput:\nready"),
        direct("Output:\nready"),
        "ready",
        "",
        "Chunk ID: 85f3fb\nready",
        '{"output": 3}',
        '{"output": "ready", "metadata": 3}',
        None,
        7,
        [],
        [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
        [{"type": "input_image", "image_url": "data:image/png;base64,BBBB"}],
        {"content": "ready"},
    ],
)  # fmt: skip
def test_different_outputs_have_different_digests(text: object) -> None:
    ready = digest_of(call("call_1"), output("call_1", direct("ready")))
    assert digest_of(call("call_1"), output("call_1", text)) != ready


def test_a_nested_head_of_a_patch_is_left_out() -> None:
    text = "Wall time: {} seconds\nOutput:\nExit code: {}\nWall time: {} seconds\nOutput:\nSuccess."
    good = [read([meta(), call("1"), output("1", text.format(wall, 0, wall))]).answers[0] for wall in (0, 1)]
    [bad] = read([meta(), call("1"), output("1", text.format(0, 1, 0))]).answers
    assert good[0] == good[1]
    assert [answer.is_error for answer in (*good, bad)] == [False, False, True]
    assert bad.digest != good[0].digest


@pytest.mark.parametrize(
    "text",
    [
        "unsupported call: read_mail",
        "failed to parse function arguments: missing field `cmd` at line 1 column 10",
        "apply_patch verification failed: Failed to read file to update notes.md: No such file or directory",
        "unable to locate image at `plan.png`: No such file or directory (os error 2)",
        "exec command rejected by user",
    ],
)
def test_a_call_that_the_program_refuses_is_an_error(text: str) -> None:
    """Nothing but the text of its output tells that; it has no head. Where a command prints the same, nothing failed."""
    assert read([meta(), call("call_1"), output("call_1", text)]).errors == 1
    assert read([meta(), call("call_1"), output("call_1", direct(text))]).errors == 0


def test_a_command_that_fails_in_a_script_makes_the_call_an_error_once() -> None:
    """The output of a script says `Script completed` whatever its commands did; they have ids of their own."""
    lines = [script("call_1"), ended("exec-1"), ended("exec-2", code=1), ended("exec-3", code=1)]
    told = read([meta(), begin(), *lines, scripted("call_1", ""), script("call_2"), scripted("call_2", "")])
    assert [answer.is_error for answer in told.answers] == [True, False]


def test_a_script_that_fails_itself_is_an_error() -> None:
    told = read([meta(), script("call_1"), scripted("call_1", "Script error:\nx", status="failed")])
    assert told.errors == 1


@pytest.mark.parametrize("failing", ["call_1", "call_2", "call_3"])
def test_a_failure_belongs_to_the_script_that_names_its_command(failing: str) -> None:
    """Scripts asked for at once run one after the other, and their outputs come when all have run."""
    commands = {"call_1": "grep \"a\\b\" 'ü.md'", "call_2": "ls", "call_3": "make\n test"}
    sources = {
        "call_1": f"await tools.exec_command({json.dumps({'cmd': commands['call_1']}, ensure_ascii=False)});",
        "call_2": "await tools.exec_command({cmd: 'ls'});",
        "call_3": "await tools.exec_command({cmd: `make\n test`});",
    }
    calls = [script(name, source) for name, source in sources.items()]
    ends = [ended(f"exec-{name}", code=name == failing, command=it) for name, it in commands.items()]
    told = read([meta(), begin(), *calls, *ends, *[scripted(name, "") for name in commands]])
    assert [answer.call_id for answer in told.answers if answer.is_error] == [failing]


def test_a_failure_belongs_to_the_script_that_names_its_command_far_down() -> None:
    """Before that it may say at length what it is for, or write a file."""
    long = f"// {'so ' * 5000}\nawait tools.exec_command({{cmd: 'make test'}});"
    calls = [script("call_1", f"// {'so ' * 5000}\ntext(1);"), script("call_2", long)]
    outputs = [scripted("call_1", ""), scripted("call_2", "")]
    told = read([meta(), begin(), *calls, ended("exec-1", code=1, command="make test"), *outputs])
    assert [answer.is_error for answer in told.answers] == [False, True]


def test_a_failure_that_no_script_names_is_the_first_ones() -> None:
    odd = event("item_completed", item={"type": "CommandExecution", "id": "x", "command": [], "exit_code": 1})
    for failure in (ended("x", code=1), odd, event("item_completed", item={"id": "x", "status": "failed"})):
        told = read(
            [
                meta(),
                script("call_1"),
                script("call_2"),
                failure,
                scripted("call_1", ""),
                scripted("call_2", ""),
            ]
        )
        assert [answer.is_error for answer in told.answers] == [True, False]


def test_a_script_that_runs_on_fails_where_it_is_waited_for() -> None:
    """Its first output only says that it runs; that answer is told and stays."""
    running = scripted("call_1", "", status="running with cell ID 7")
    wait = call("call_2", '{"cell_id": "7"}', name="wait", namespace="functions")
    lines = [
        meta(),
        begin(),
        script("call_1"),
        running,
        wait,
        ended("exec-1", code=1),
        scripted("call_2", ""),
    ]
    assert [answer.is_error for answer in read(lines).answers] == [False, True]


def test_a_command_that_runs_on_fails_where_it_is_polled() -> None:
    """Its end bears the id of the call that has its answer already."""
    running = "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOriginal token count: 0\nOutput:\n"
    lines = [meta(), begin(), call("call_1"), output("call_1", running), call("call_2", name="write_stdin")]
    told = read(
        [*lines, ended("call_1", code=1), output("call_2", direct("", code=1)), ended("call_1", code=1)]
    )
    assert [(answer.call_id, answer.is_error) for answer in told.answers] == [
        ("call_1", False),
        ("call_2", True),
    ]


def test_running_commands_differ_in_their_session() -> None:
    running = "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID {}\nOutput:\nx"
    first, other = (digest_of(call("1"), output("1", running.format(number))) for number in (42, 43))
    assert first == other


def test_an_exit_code_in_the_output_counts_where_no_event_tells_it() -> None:
    told = read([meta(), call("call_1"), output("call_1", direct("", code=127)), ended("call_1", code=127)])
    assert told.errors == len(told.answers) == 1


@pytest.mark.parametrize(("code", "errors"), [(0, 0), (1, 1), (-9, 1), (None, 0)])
def test_commands_of_older_releases_end_in_an_event_of_their_own(code: int | None, errors: int) -> None:
    lines = [
        call("call_1"),
        event("exec_command_end", call_id="call_1", exit_code=code),
        output("call_1", "x"),
    ]
    assert read([meta(), *lines]).errors == errors


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_change_of_files_or_a_call_of_another_program_may_fail(status: str) -> None:
    """They have a status only."""
    failure = event("item_completed", item={"type": "FileChange", "id": "call_1", "status": status})
    patch = item("custom_tool_call", name="apply_patch", call_id="call_1", input="*** Begin Patch")
    assert read([meta(), patch, failure, output("call_1", "{}")]).errors == 1


def test_an_answer_is_told_once() -> None:
    """A script may add notes to its call later."""
    note = item("custom_tool_call_output", call_id="call_1", output="still at it")
    told = read([meta(), script("call_1"), scripted("call_1", "done"), note, note])
    assert len(told.answers) == 1


def test_a_killed_call_gets_no_answer_and_no_blame() -> None:
    """After a kill nothing is written; a resume begins a turn in the same file."""
    killed = [meta(), begin(), script("call_1"), used("resp_1", sum_of(10, 1))]
    resumed = [begin(), script("call_2", "run()"), ended("exec-9", code=1), scripted("call_2", "")]
    told = read([*killed, *resumed])
    assert [answer.call_id for answer in told.answers if answer.is_error] == ["call_2"]
    assert len(told.calls) == 2


def test_a_call_that_answers_a_compaction_gets_no_answer_and_no_blame() -> None:
    """It is not run; what fails afterwards is what the model asks for then, be it the same command."""
    asked = [
        meta(),
        begin(),
        script("call_1", "make()"),
        record("compacted", {"message": "So far: nothing."}),
    ]
    later = [script("call_2", "make()"), ended("exec-9", code=1), scripted("call_2", "")]
    assert [(answer.call_id, answer.is_error) for answer in read([*asked, *later]).answers] == [
        ("call_2", True)
    ]


def test_an_interrupted_call_may_get_its_output_after_the_turn() -> None:
    told = read(
        [meta(), begin(), call("1"), event("turn_aborted", reason="interrupted"), output("1", "aborted")]
    )
    assert [answer.is_error for answer in told.answers] == [False]
