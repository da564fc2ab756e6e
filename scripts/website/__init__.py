"""Makes one site of the pages of docs/ and the reference, around two runs of Doxygen. cmake/SimplenetDocs.cmake says in
which order.

contents.py    which pages there are, and their order
names.py       which names the reference has
markdown.py    a page as Doxygen reads it
generated.py   what is written for the site alone: the navigation, the list of examples, "see also"
prepare.py     all of that into a folder
finish.py      what Doxygen wrote, mended
"""
