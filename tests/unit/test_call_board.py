"""The board of the tool calls under way."""

from agent.call_board import SIZE, SLOTS, CallBoard, read_board


def test_it_shows_what_has_begun_and_has_not_ended() -> None:
    memory = bytearray(SIZE)
    board = CallBoard(memory)
    first, second = board.begin("add of run 0-1"), board.begin("wait of run 0-2")
    assert read_board(bytes(memory)) == ["add of run 0-1", "wait of run 0-2"]

    board.end(first)
    assert read_board(bytes(memory)) == ["wait of run 0-2"]
    board.begin("x")
    board.end(second)
    assert read_board(bytes(memory)) == ["x"]


def test_long_names_are_cut_and_odd_ones_are_shown() -> None:
    memory = bytearray(SIZE)
    board = CallBoard(memory)
    board.begin("ä" * 200)
    board.begin("\ud800")
    board.begin("next")
    shown = read_board(bytes(memory))
    assert (len(memory), len(shown[0]), shown[1:]) == (SIZE, 64, ["?", "next"])


def test_a_full_board_shows_no_more() -> None:
    memory = bytearray(SIZE)
    board = CallBoard(memory)
    slots = [board.begin(f"call {number}") for number in range(SLOTS + 5)]
    assert len(read_board(bytes(memory))) == SLOTS
    for slot in slots:
        board.end(slot)
    assert read_board(bytes(memory)) == []
