"""`hil run --way`: how scenarios ask StarlingX systems."""


def test_the_way_that_is_named_is_the_one_that_scenarios_have(project) -> None:
    project.write("def test_asks(hil_way): assert hil_way == 'cli'")
    assert project.hil("run", "test_plan.py", "--way", "cli").code == 0
    assert project.hil("run", "test_plan.py").code == 1, "the API is the default"


def test_another_word_is_no_way(project) -> None:
    project.write("def test_asks(hil_way): pass")
    done = project.hil("run", "test_plan.py", "--way", "soap")
    assert done.code == 2
    assert "soap" in done.text
