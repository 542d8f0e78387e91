package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a measurement with what is needed to judge and to repeat it.
type Report struct {
	Calla    string    `json:"calla"` // version
	Revision string    `json:"revision,omitempty"`
	At       time.Time `json:"at"`
	System   string    `json:"system"`
	Device   string    `json:"device"`
	Model    string    `json:"model"`

	MaxSeq       int     `json:"max_seq"`
	PrefillChunk int     `json:"prefill_chunk"`
	Tokens       int     `json:"generated_tokens"` // after each prompt
	MaxWait      float64 `json:"max_wait"`         // see Watch.Most

	Load    float64 `json:"load_s"`
	Peak    int64   `json:"peak_memory_bytes,omitempty"`
	Traffic Traffic `json:"bytes_per_token"`
	// Bandwidth is the machine's, in bytes a second; 0 where NoBandwidth says why
	// not.
	Bandwidth   float64 `json:"bandwidth_bytes_per_s,omitempty"`
	NoBandwidth string  `json:"no_bandwidth,omitempty"`

	Points []Point `json:"points"`
	// DecodeFit is seconds a token: intercept and slope for each token of
	// context. PrefillFit is seconds of a prompt: a·n + b·n².
	DecodeFit  *Fit     `json:"decode_fit,omitempty"`
	PrefillFit *Fit     `json:"prefill_fit,omitempty"`
	Missing    []string `json:"missing,omitempty"`
}

// Conclude works out what follows from the points. Only points with all their
// runs are fitted.
func (r *Report) Conclude() {
	var lengths, prompts, contexts, steps []float64
	for i := range r.Points {
		x := &r.Points[i]
		whole := len(x.Runs) == x.Wanted
		if x.Prefill != nil && whole {
			lengths = append(lengths, float64(x.Tokens))
			prompts = append(prompts, over(x.Runs, func(s Sample) float64 { return s.Prefill.Seconds() }).Median)
		}
		if x.Decode != nil {
			middle, step := x.Tokens+r.Tokens/2, over(x.Runs, Sample.step).Median
			x.Bytes = r.Traffic.at(middle)
			if r.Bandwidth > 0 {
				x.Share = float64(x.Bytes) / step / r.Bandwidth
			}
			if whole {
				contexts, steps = append(contexts, float64(middle)), append(steps, step)
			}
		}
		if x.Refused == "" && !whole {
			r.Missing = append(r.Missing, fmt.Sprintf("%d tokens: %d of %d runs, it was stopped", x.Tokens, len(x.Runs), x.Wanted))
		}
	}
	if f, ok := fitPrefill(lengths, prompts); ok {
		r.PrefillFit = &f
	}
	if f, ok := fitDecode(contexts, steps); ok {
		r.DecodeFit = &f
	}
}

// Measured reports whether any length has numbers.
func (r *Report) Measured() bool {
	return slices.ContainsFunc(r.Points, func(x Point) bool { return x.Refused == "" && len(x.Runs) > 0 })
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "calla %s on %s, %s\n", named(r.Calla, r.Revision), r.System, r.Device)
	fmt.Fprintf(&b, "%s, contexts of at most %d tokens, prefill in calls of at most %d\n", r.Model, r.MaxSeq, r.PrefillChunk)
	fmt.Fprintf(&b, "loaded in %s s; peak memory %s; %s\n", digits(r.Load), memory(r.Peak), r.bandwidth())
	fmt.Fprintf(&b, "prompts are random tokens, %d tokens follow each; a number is the median of the runs (least–most)\n", r.Tokens)
	fmt.Fprintf(&b, "%s\n\n", counted(r.MaxWait))
	r.table(&b)
	fmt.Fprintf(&b, "\nprefill  %s\n", r.prefillLine())
	fmt.Fprintf(&b, "decode   %s\n", r.decodeLine())
	if slices.ContainsFunc(r.Points, func(x Point) bool { return x.Share > 1 }) {
		fmt.Fprintln(&b, "more than the bandwidth: caches held a part of what was read, or memory was read while the machine was busier")
	}
	var out leftOut
	for _, x := range r.Points {
		out.rejected(x.Rejected, fmt.Sprintf("%d tokens", x.Tokens))
		out.refused(x.Refused, x.Tokens)
	}
	out.print(&b)
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "missing: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tokens\tfirst token, ms\tprefill, tok/s\tdecode, tok/s\tMB a token\tof bandwidth\truns")
	for _, x := range r.Points {
		if x.Refused != "" {
			fmt.Fprintf(t, "%d\trefused\trefused\trefused\t\t\t%d of %d\n", x.Tokens, len(x.Runs), x.Wanted)
			continue
		}
		size, share := "", ""
		if x.Bytes > 0 {
			size = digits(float64(x.Bytes) / 1e6)
		}
		if x.Share > 0 {
			share = fmt.Sprintf("%.0f %%", 100*x.Share)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%d of %d\n", x.Tokens,
			spread(x.FirstToken, 1000), spread(x.Prefill, 1), spread(x.Decode, 1), size, share, len(x.Runs), x.Wanted)
	}
	t.Flush()
}

func (r *Report) bandwidth() string {
	if r.Bandwidth == 0 {
		return "bandwidth not measured: " + r.NoBandwidth
	}
	return fmt.Sprintf("memory is read at %s GB/s", digits(r.Bandwidth/1e9))
}

func (r *Report) prefillLine() string {
	f := r.PrefillFit
	if f == nil {
		return noFit
	}
	return fmt.Sprintf("%s µs × n + %s µs × (n/1024)² for a prompt of n tokens; %s",
		uncertain(f.First, 1e6), uncertain(f.Second, 1e6*1024*1024), f.within())
}

func (r *Report) decodeLine() string {
	f := r.DecodeFit
	if f == nil {
		return noFit
	}
	return fmt.Sprintf("%s ms a token + %s µs for each 1024 tokens of context; %s",
		uncertain(f.First, 1e3), uncertain(f.Second, 1e6*1024), f.within())
}

var noFit = fmt.Sprintf("no fit: fewer than %d lengths have numbers", minPoints)

func (f *Fit) within() string {
	return fmt.Sprintf("%d lengths, all within %.1f %%", f.Points, 100*f.Worst)
}

// counted says which runs count.
func counted(maxWait float64) string {
	if maxWait >= AnyWait {
		return "a run counts however long its threads waited for a core"
	}
	return fmt.Sprintf("a run counts where its threads waited for a core for at most %.0f %% of the time", 100*maxWait)
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// spread writes a summary in a unit, or a dash.
func spread(s *Summary, unit float64) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("%s (%s–%s)", digits(s.Median*unit), digits(s.Least*unit), digits(s.Most*unit))
}

// uncertain writes a coefficient in a unit with its standard error.
func uncertain(c Coefficient, unit float64) string {
	return fmt.Sprintf("(%s ± %s)", digits(c.Value*unit), digits(c.Error*unit))
}

// digits writes a number with three digits that count, or all before the point.
func digits(x float64) string {
	switch a := max(x, -x); {
	case a >= 100 || a == 0:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	case a >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func memory(n int64) string {
	if n == 0 {
		return "not known"
	}
	return fmt.Sprintf("%s MiB", digits(float64(n)/(1<<20)))
}

func named(version, revision string) string {
	if revision == "" {
		return version
	}
	return version + " (" + revision + ")"
}
