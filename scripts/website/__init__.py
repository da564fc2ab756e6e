"""Makes one site of the pages of docs/ and the reference, around two runs of Doxygen. cmake/SimplenetDocs.cmake defines
the order of the steps.

contents.py    the pages and their order
names.py       the names that the reference documents
markdown.py    translates a page for Doxygen
generated.py   pages that exist only on the site: the navigation, the list of examples, "see also"
prepare.py     writes all of these into a folder
finish.py      corrects Doxygen's output
"""
