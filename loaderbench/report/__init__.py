"""Reports of a `RunRecord`. The `sections` decide all words and numbers; presenters only draw them.

`document.build_document` -> `html.render_html` | `terminal.print_summary` | `markdown.render_markdown`.
"""
