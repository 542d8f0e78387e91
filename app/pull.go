package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"calla/app/prefs"
	"calla/core/download"
)

// pullFlags are the flags of calla pull.
type pullFlags struct {
	modelFiles
	endpoint    string
	from        []string
	limit       byteRate
	connections int
	pause       bool
	resume      bool
}

func newPull() *cobra.Command {
	var p pullFlags
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Download the model and prove that it is the right one",
		Long: "pull brings the files of the pinned model to this machine. What is there already,\n" +
			"also in the caches of the Hugging Face Hub and of LM Studio, is verified and used\n" +
			"where it lies; the rest is downloaded. A file gets its name only after its digest\n" +
			"matched. Stopped at any time, by whatever, the next pull goes on from there.\n\n" +
			"HF_ENDPOINT, HF_TOKEN, HTTPS_PROXY and NO_PROXY are honoured; a token is sent to\n" +
			"the endpoint alone.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	p.flags(cmd)
	f := cmd.Flags()
	bind(f, "endpoint", &p.endpoint)
	f.StringArrayVar(&p.from, "from", nil, "further folder in which copies may be; can be given several times")
	f.Var(&p.limit, "limit", "most bytes a second, such as 500k or 20M; 0 is no limit")
	checked(f, prefs.Preference{
		Key: "connections", Default: strconv.Itoa(download.DefaultConnections), Check: prefs.Whole(1, 64), Help: "connections at once",
	}, &p.connections)
	f.BoolVar(&p.pause, "pause", false, "hold up the pull that runs, in whatever window, and end")
	f.BoolVar(&p.resume, "resume", false, "let the pull that was paused go on, and end")
	cmd.MarkFlagsMutuallyExclusive("pause", "resume")
	return cmd
}

func (p *pullFlags) run(cmd *cobra.Command) error {
	o, err := p.options()
	if err != nil {
		return err
	}
	switch {
	case p.pause:
		return advised(o.Store.Pause(o.Folder))
	case p.resume:
		return o.Store.Resume(o.Folder)
	}
	if err := p.complete(&o); err != nil {
		return err
	}
	show := newJobShow(cmd, p.asJSON)
	o.Progress = show.event
	r, err := download.Pull(cmd.Context(), o)
	show.end()
	if err != nil {
		return p.failed(cmd, err)
	}
	return p.pulled(cmd.OutOrStdout(), r)
}

// complete adds to the options what is Pull's alone.
func (p *pullFlags) complete(o *download.Options) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("no home folder: %w", err)
	}
	o.Places = append(p.from, download.Places(os.Getenv, home)...)
	o.Endpoint = orElse(p.endpoint, os.Getenv("HF_ENDPOINT"))
	o.Token = os.Getenv("HF_TOKEN")
	o.Connections = p.connections
	o.Throttle = download.NewThrottle(int64(p.limit))
	o.Proxy = download.SystemProxy()
	return nil
}

// pulledFolder is what calla pull --json prints last.
type pulledFolder struct {
	Stage  download.Stage  `json:"stage"`
	Folder string          `json:"folder"`
	Files  []modelFileLine `json:"files"`
}

// modelFileLine is a file of a complete folder.
type modelFileLine struct {
	Name   string          `json:"name"`
	Size   int64           `json:"size"`
	Digest string          `json:"digest"`
	Origin download.Origin `json:"origin"`
	Target string          `json:"target,omitempty"`
}

func (p *pullFlags) pulled(out io.Writer, r *download.Receipt) error {
	if p.asJSON {
		last := pulledFolder{Stage: download.StageDone, Folder: r.Folder}
		for _, f := range r.Files {
			last.Files = append(last.Files, modelFileLine{f.Name, f.Size, f.Digest, f.Origin, f.Target})
		}
		return printJSON(out, last)
	}
	linked := 0
	for _, f := range r.Files {
		if f.Origin == download.Linked {
			linked++
		}
	}
	if linked > 0 {
		fmt.Fprintf(out, "%d of %d files were found on this machine and are used where they lie\n", linked, len(r.Files))
	}
	_, err := fmt.Fprintf(out, "verified: %s\n", r.Folder)
	return err
}

// failed says how a pull ended that brought not everything.
func (p *pullFlags) failed(cmd *cobra.Command, err error) error {
	err = advised(err)
	if p.asJSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]string{"stage": "failed", "error": err.Error()}); err != nil {
			return err
		}
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(cmd.ErrOrStderr(), "stopped; calla pull goes on from here")
	}
	return err
}

// byteRate is a flag: bytes a second, with k, M or G for thousands, millions
// and thousand millions.
type byteRate int64

func (r *byteRate) Type() string   { return "rate" }
func (r *byteRate) String() string { return strconv.FormatInt(int64(*r), 10) }

func (r *byteRate) Set(s string) error {
	unit := int64(1)
	digits := strings.TrimRight(s, "kKmMgG")
	switch strings.ToLower(s[len(digits):]) {
	case "":
	case "k":
		unit = 1e3
	case "m":
		unit = 1e6
	case "g":
		unit = 1e9
	default:
		unit = 0
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || unit == 0 || !(x >= 0 && x <= 1e6) || x > 0 && x*float64(unit) < 1 {
		return fmt.Errorf("%q, want bytes a second such as 500k or 20M", s)
	}
	*r = byteRate(x * float64(unit))
	return nil
}
