"""From a `RunRecord` to something a person reads. `document` decides every word and number, the presenters only draw.

`document.build_document` -> `html.render_html` | `console.print_summary` | `notebook.notebook_html`.
"""
