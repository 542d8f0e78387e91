package server

import (
	"fmt"
	"strings"
)

// Tables returns the README's account of the API in Markdown: the endpoints,
// the headers, and folded for each endpoint its fields. What is within messages
// and tools is left to GET /v1/capabilities.
func Tables() string {
	var b strings.Builder
	b.WriteString("| endpoint | what it does |\n| --- | --- |\n")
	for _, r := range (&server{}).table() {
		fmt.Fprintf(&b, "| `%s %s` | %s |\n", r.method, r.plainPath(), r.summary)
	}
	writeFolded(&b, "Headers", headerLines)
	for _, a := range apis {
		writeFolded(&b, "<code>"+a.path+"</code>", lines(a.fields, ""))
	}
	return b.String()
}

// writeFolded writes a table that opens with a click on its title.
func writeFolded(b *strings.Builder, title string, all []Line) {
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", title)
	b.WriteString("| field | | values | |\n| --- | --- | --- | --- |\n")
	for _, l := range all {
		if strings.Contains(l.Name, "[") {
			continue
		}
		support := string(l.Support)
		if l.Required {
			support += ", required"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", l.Name, support, cell(l.Values), cell(l.Note))
	}
	b.WriteString("\n</details>\n")
}

// cell makes a text fit for a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;").Replace(s)
}
