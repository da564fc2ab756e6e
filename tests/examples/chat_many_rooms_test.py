"""chat_many_rooms, against clients that do not use the library."""

import support
from support import Server


class chat_many_rooms_test(support.TestCase):
    def enter(self, server, room=None):
        client = server.connect()
        lines = client.makefile("rw", encoding="utf-8", newline="\n")
        self.assertEqual(lines.readline(), "* you are in lobby\n")
        if room:
            self.say(lines, f"/join {room}")
            self.assertEqual(lines.readline(), f"* you are in {room}\n")
        return lines

    def say(self, lines, text):
        lines.write(text + "\n")
        lines.flush()

    def test_everybody_in_a_room_hears_what_is_said_there_in_one_order(self):
        with Server("chat_many_rooms") as server:
            guests = [self.enter(server, "blue") for _ in range(8)]
            for number, each in enumerate(guests):
                self.say(each, f"hello from {number}")
            heard = [[each.readline() for _ in guests] for each in guests]
            expected = {f"hello from {number}\n" for number in range(len(guests))}
            for each in heard:
                self.assertEqual(set(each), expected)
                self.assertEqual(each, heard[0])

    def test_rooms_do_not_hear_each_other(self):
        with Server("chat_many_rooms") as server:
            red, blue = self.enter(server, "red"), self.enter(server, "blue")
            self.say(red, "only red")
            self.assertEqual(red.readline(), "only red\n")
            self.say(blue, "only blue")
            self.assertEqual(blue.readline(), "only blue\n")

    def test_a_guest_can_change_rooms(self):
        with Server("chat_many_rooms") as server:
            red, guest = self.enter(server, "red"), self.enter(server, "blue")
            self.say(guest, "/join red")
            self.assertEqual(guest.readline(), "* you are in red\n")
            self.say(red, "welcome")
            self.assertEqual(guest.readline(), "welcome\n")

    def test_a_guest_that_does_not_read_holds_nobody_up(self):
        with Server("chat_many_rooms") as server:
            self.enter(server, "red")  # never reads again
            talker = self.enter(server, "red")
            for number in range(2000):
                self.say(talker, f"{number} " + "x" * 900)
                self.assertTrue(talker.readline().startswith(f"{number} "))


if __name__ == "__main__":
    support.main()
