from episodes import MakeEnv, Scene

SUBMIT_LINE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


TOOLSET = "bash"


def test_observations_have_mini_swe_agents_form(scene: Scene) -> None:
    assert scene.reply("bash", command="echo a; echo b >&2; exit 1") == (
        "<returncode>1</returncode>\n<output>\na\nb\n</output>"
    )
    assert scene.reply("bash", command="true") == "<returncode>0</returncode>\n<output>\n</output>"


def test_a_timeout_keeps_the_output_and_does_not_submit(scene: Scene) -> None:
    scene.command_timeout_s = 1.0
    result = scene.call("bash", command=f"echo {SUBMIT_LINE}; sleep 60")
    assert result.content == (
        "<exception>the command was killed after 1 seconds</exception>\n"
        f"<returncode>-1</returncode>\n<output>\n{SUBMIT_LINE}\n</output>"
    )
    assert not result.submitted


def test_outputs_of_10000_characters_lose_their_middle(scene: Scene) -> None:
    short_reply = scene.reply("bash", command="printf '%9999s' | sed 's/ /é/g'")
    assert short_reply == f"<returncode>0</returncode>\n<output>\n{'é' * 9999}</output>"
    result = scene.call("bash", command="printf '%5000s%d%5000s' '' 7 '' | tr ' ' x")
    assert f"<output_head>\n{'x' * 5000}\n</output_head>\n" in result.content
    assert "<elided_chars>\n1 characters elided\n</elided_chars>\n" in result.content
    assert result.content.endswith(f"<output_tail>\n{'x' * 5000}\n</output_tail>")
    assert "</warning><output_head>" in result.content
    exact_reply = scene.reply("bash", command="printf '%10000s' | tr ' ' x")
    assert "<elided_chars>\n0 characters elided\n</elided_chars>\n" in exact_reply


def test_a_command_submits_by_its_first_line_and_exit_code(scene: Scene) -> None:
    for command, submits in [
        (f"echo {SUBMIT_LINE}", True),
        ("echo MINI_SWE_AGENT_FINAL_OUTPUT", True),
        (f"echo; echo ' {SUBMIT_LINE} '; echo and more", True),
        (f"echo {SUBMIT_LINE} >&2", True),
        (f"echo {SUBMIT_LINE}; exit 1", False),
        (f"echo first; echo {SUBMIT_LINE}", False),
        (f"echo {SUBMIT_LINE} too", False),
        (f": {SUBMIT_LINE}", False),
    ]:
        assert scene.call("bash", command=command).submitted is submits, (command, submits)


def test_a_bash_block_is_a_call_and_can_submit(make_env: MakeEnv) -> None:
    env = make_env(toolset="bash")
    env.reset()
    reply = env.step("Let me look.\n\n```bash\nls\n```")[4]["text"]
    assert reply == "<returncode>0</returncode>\n<output>\nshapes.py\ntest_shapes.py\n</output>"
    assert "Expected exactly 1 action, found 0." in env.step("I do not know.")[4]["text"]
    env.step("```bash\nsed -i 's/width + height/width * height/' shapes.py\n```")
    *_, info = env.step(f"```bash\necho {SUBMIT_LINE}\n```")
    assert (info["resolved"], info["stop_reason"]) == (True, "submitted")
