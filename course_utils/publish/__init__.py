"""From a notebook to what others read: executed notebooks, slides, pages and handouts."""
