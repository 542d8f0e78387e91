package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Comparison is a report of two servers.
type Comparison struct {
	Calla    string    `json:"calla"` // version of this program, which measured
	Revision string    `json:"revision,omitempty"`
	At       time.Time `json:"at"`
	System   string    `json:"system"`
	Device   string    `json:"device,omitempty"` // of our server, where this program started it
	Ours     Named     `json:"ours"`
	Theirs   Named     `json:"theirs"`
	API      string    `json:"api"`
	Tokens   int       `json:"generated_tokens"`
	// Peak is the most memory of our server, where this program started it.
	Peak    int64    `json:"our_peak_memory_bytes,omitempty"`
	MaxWait float64  `json:"max_wait"`
	Pairs   []Pair   `json:"points"`
	Missing []string `json:"missing,omitempty"`
	// Unknown is what could not be checked.
	Unknown []string `json:"unknown,omitempty"`
}

// Named is a server and the model it was asked for.
type Named struct {
	URL   string `json:"url"`
	Model string `json:"model"`
	// GoesOn is the field by which answers were kept from ending early, where one
	// was; see Server.GoOn.
	GoesOn string `json:"goes_on_by,omitempty"`
}

func (n Named) String() string {
	s := n.Model + " at " + n.URL
	if n.GoesOn != "" {
		s += ", told by " + n.GoesOn + " to go on"
	}
	return s
}

// Conclude says what is missing.
func (c *Comparison) Conclude() {
	for _, x := range c.Pairs {
		if n := len(x.Ours.Runs); x.Refused == "" && n < x.Wanted {
			c.Missing = append(c.Missing, fmt.Sprintf("%d tokens: %d of %d rounds, it was stopped", x.Tokens, n, x.Wanted))
		}
	}
}

// Measured reports whether any length has numbers.
func (c *Comparison) Measured() bool {
	return slices.ContainsFunc(c.Pairs, func(x Pair) bool { return x.Refused == "" && len(x.Ours.Runs) > 0 })
}

// Print writes the comparison for people.
func (c *Comparison) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "calla %s on %s", named(c.Calla, c.Revision), c.System)
	if c.Device != "" {
		fmt.Fprintf(&b, ", %s", c.Device)
	}
	fmt.Fprintf(&b, "\nours    %s", c.Ours)
	if c.Peak > 0 {
		fmt.Fprintf(&b, ", peak memory %s", memory(c.Peak))
	}
	fmt.Fprintf(&b, "\ntheirs  %s\n", c.Theirs)
	fmt.Fprintf(&b, "streamed %s over HTTP on both sides, by turns (ours, theirs, theirs, ours); at most %d tokens follow each prompt\n", c.API, c.Tokens)
	fmt.Fprintln(&b, "prefill is prompt tokens over the time to the first token; a number is the median of the rounds (least–most);")
	fmt.Fprintf(&b, "a ratio is how many times as fast ours is; %s\n\n", counted(c.MaxWait))
	c.table(&b)
	b.WriteByte('\n')
	var out leftOut
	for _, x := range c.Pairs {
		if x.Note != "" {
			fmt.Fprintf(&b, "note: %d tokens: %s\n", x.Tokens, x.Note)
		}
		out.rejected(x.Ours.Rejected, fmt.Sprintf("ours, %d tokens", x.Tokens))
		out.rejected(x.Theirs.Rejected, fmt.Sprintf("theirs, %d tokens", x.Tokens))
		out.refused(x.Refused, x.Tokens)
	}
	out.print(&b)
	for _, u := range c.Unknown {
		fmt.Fprintf(&b, "not known: %s\n", u)
	}
	for _, m := range c.Missing {
		fmt.Fprintf(&b, "missing: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Comparison) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tokens\t\tcounted\tfirst token, ms\tprefill, tok/s\tdecode, tok/s\trounds")
	for _, x := range c.Pairs {
		if x.Refused != "" {
			fmt.Fprintf(t, "%d\tratio\t\trefused\trefused\trefused\t%d of %d\n", x.Tokens, len(x.Ours.Runs), x.Wanted)
			continue
		}
		for _, s := range []struct {
			name string
			Side
		}{{"ours", x.Ours}, {"theirs", x.Theirs}} {
			fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\t%s\t\n", x.Tokens, s.name, s.Counted, spread(s.FirstToken, 1000), spread(s.Prefill, 1), spread(s.Decode, 1))
		}
		fmt.Fprintf(t, "%d\tratio\t\t%s\t%s\t%s\t%d of %d\n", x.Tokens, spread(x.FirstToken, 1), spread(x.Prefill, 1), spread(x.Decode, 1), len(x.Ours.Runs), x.Wanted)
	}
	t.Flush()
}

// WriteCSV writes a row for each length. What has no number is empty.
func (c *Comparison) WriteCSV(w io.Writer) error {
	header := []string{"calla", "revision", "system", "api", "ours", "theirs", "tokens", "ours_counted", "theirs_counted"}
	for _, side := range []string{"ours", "theirs"} {
		for _, what := range []string{"first_token_s", "prefill_tokens_per_s", "decode_tokens_per_s"} {
			header = append(header, side+"_"+what, side+"_"+what+"_least", side+"_"+what+"_most")
		}
	}
	for _, what := range []string{"first_token", "prefill", "decode"} {
		header = append(header, what+"_ratio", what+"_ratio_least", what+"_ratio_most")
	}
	out := csv.NewWriter(w)
	out.Write(append(header, "rounds", "rounds_wanted", "note", "refused"))
	for _, x := range c.Pairs {
		row := []string{
			c.Calla, c.Revision, c.System, c.API, c.Ours.Model, c.Theirs.Model,
			strconv.Itoa(x.Tokens), whole(int64(x.Ours.Counted)), whole(int64(x.Theirs.Counted)),
		}
		for _, n := range []Numbers{x.Ours.Numbers, x.Theirs.Numbers, {x.FirstToken, x.Prefill, x.Decode}} {
			row = slices.Concat(row, cells(n.FirstToken), cells(n.Prefill), cells(n.Decode))
		}
		out.Write(append(row, strconv.Itoa(len(x.Ours.Runs)), strconv.Itoa(x.Wanted), x.Note, x.Refused))
	}
	out.Flush()
	return out.Error() // of any write
}

// WritePicture draws prefill over decode, both servers in each. What is refused
// is not drawn.
func (c *Comparison) WritePicture(w io.Writer, format string) error {
	name := func(who string, n Named) string { return who + ": " + n.Model }
	prefill := []series{{name: name("ours", c.Ours)}, {name: name("theirs", c.Theirs)}}
	decode := []series{{name: name("ours", c.Ours)}, {name: name("theirs", c.Theirs)}}
	for _, x := range c.Pairs {
		if x.Refused != "" {
			continue
		}
		for i, s := range []Side{x.Ours, x.Theirs} {
			prefill[i].add(x.Tokens, s.Prefill)
			decode[i].add(x.Tokens, s.Decode)
		}
	}
	return drawCharts(w, format, []chart{
		{"Prefill, over HTTP", "tokens of the prompt", "tokens a second", prefill},
		{"Decode, over HTTP", "tokens of context", "tokens a second", decode},
	})
}
