"""From a `RunRecord` to something a person reads. `sections` decide every word and number, the presenters only draw.

`document.build_document` -> `html.render_html` | `terminal.print_summary` | `markdown.render_markdown`.
"""
