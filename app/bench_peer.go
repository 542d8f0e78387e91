package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"calla/app/bench"
)

// benchPeer are the flags of calla bench for another server.
type benchPeer struct {
	url, model, key string
	chat            bool
	ours, ourKey    string // a running server of ours, and its key
	patience        time.Duration
}

// defaultPatience is more than the longest prefill of a fast machine.
const defaultPatience = 10 * time.Minute

func (p *benchPeer) flags(f *pflag.FlagSet) {
	f.StringVar(&p.url, "against", "", "address of another server of OpenAI's API to measure beside this one")
	f.StringVar(&p.model, "against-model", "", "id of its model; by default the first that it lists")
	f.StringVar(&p.key, "against-key", "", "its key; others can see it in the list of processes, so rather set CALLA_AGAINST_KEY")
	f.BoolVar(&p.chat, "chat", false, "with --against: ask for chat completions, not completions")
	f.StringVar(&p.ours, "url", "", "with --against: address of a running calla serve, instead of one that bench starts")
	f.DurationVar(&p.patience, "patience", defaultPatience, "with --against: how long the first token of an answer may take, and how long all the others, such as 90s or 2h; 0s waits without end")
	f.StringVar(&p.ourKey, "key", "", "key of the server at --url; rather set CALLA_KEY")
}

// check refuses flags that have no meaning alone, and what is no address.
func (p *benchPeer) check() error {
	if p.url != "" {
		if p.patience < 0 {
			return fmt.Errorf("--patience is %v, want a time such as 90s, or 0s to wait without end", p.patience)
		}
		err := bench.CheckAddress("the other server", p.url)
		if err == nil && p.ours != "" {
			err = bench.CheckAddress("our server", p.ours)
		}
		return err
	}
	for flag, given := range map[string]bool{
		"against-model": p.model != "", "against-key": p.key != "", "chat": p.chat, "url": p.ours != "",
		"patience": p.patience != 0 && p.patience != defaultPatience,
	} {
		if given {
			return fmt.Errorf("--%s without --against, want the address of the other server too", flag)
		}
	}
	return nil
}

// textRoom is the share of a context that texts may take: they are not made to
// the token, and templates come around them.
const textRoom = 0.9

// compare measures another server beside ours, both over HTTP.
func (b *benchFlags) compare(ctx context.Context, out, progress io.Writer) error {
	api := "completions"
	if b.peer.chat {
		api = "chat completions"
	}
	theirs, err := bench.NewServer(ctx, "the other server", b.peer.url, b.peer.key, b.peer.model, b.peer.chat)
	if err != nil {
		return err
	}
	c := &bench.Comparison{
		Calla: version, Revision: revision(), At: time.Now(), System: runtime.GOOS + "/" + runtime.GOARCH,
		API: api, Tokens: b.plan.Tokens, MaxWait: b.maxWait / 100,
	}
	own, err := b.ours(ctx, c, progress)
	if err != nil {
		return err
	}
	defer own.end()
	plan, err := b.planFor(int(textRoom * float64(own.maxSeq)))
	if err != nil {
		return err
	}
	tell := teller(progress)
	if c.Ours, err = b.meet(ctx, own.Server, c, tell); err != nil {
		return err
	}
	if c.Theirs, err = b.meet(ctx, theirs, c, tell); err != nil {
		return err
	}
	d := bench.Duel{
		Ours: own.Server, Theirs: theirs,
		OurWatch: b.watch(own.threads, c.MaxWait), TheirWatch: b.watch(0, c.MaxWait), Seed: rand.Uint64(),
		Tell: tell,
	}
	if c.Pairs, err = d.Run(ctx, plan); err != nil {
		return err
	}
	if b.peer.ours == "" {
		c.Peak = bench.PeakMemory()
	}
	c.Conclude()
	return b.finish(ctx, out, c)
}

// teller writes lines of several goroutines.
func teller(progress io.Writer) func(line string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(progress, line)
	}
}

// meet prepares a server for being measured, and returns what the report calls
// it.
func (b *benchFlags) meet(ctx context.Context, s *bench.Server, c *bench.Comparison, tell func(string)) (bench.Named, error) {
	s.Patience, s.Tell = b.peer.patience, tell
	if _, known := s.Busy(ctx); !known {
		c.Unknown = append(c.Unknown, fmt.Sprintf("whether other clients used %s: it does not tell", s.Name))
	}
	by, err := s.GoOn(ctx)
	return bench.Named{URL: s.URL, Model: bench.Shown(s.Model), GoesOn: by}, err
}

// ownServer is our side of a comparison.
type ownServer struct {
	*bench.Server
	maxSeq  int
	threads int // of this process that compute
	end     func()
}

// ours finds the server at --url, or starts one in this process.
func (b *benchFlags) ours(ctx context.Context, c *bench.Comparison, progress io.Writer) (*ownServer, error) {
	own := &ownServer{end: func() {}}
	url, key := b.peer.ours, b.peer.ourKey
	if url == "" {
		var err error
		if url, err = b.start(ctx, own, c, progress); err != nil {
			return nil, err
		}
		key = ""
	}
	var err error
	if own.Server, err = bench.NewServer(ctx, "our server", url, key, "", b.peer.chat); err != nil {
		own.end()
		return nil, err
	}
	if own.maxSeq == 0 {
		if own.maxSeq = b.maxSeq; own.maxSeq == 0 {
			own.maxSeq, err = own.Context(ctx)
		}
	}
	if err != nil {
		own.end()
		return nil, err
	}
	return own, nil
}

// start serves the model as calla serve does, at a free port, until end is
// called.
func (b *benchFlags) start(ctx context.Context, own *ownServer, c *bench.Comparison, progress io.Writer) (url string, err error) {
	s := serveFlags{settings: b.settings, host: "localhost"}
	o, err := b.open()
	if err != nil {
		return "", err
	}
	options, err := b.benchOptions(o)
	c.Device, own.threads, own.maxSeq, s.maxSeq = o.device.Name(), computing(o), options.MaxSeq, options.MaxSeq
	if err = errors.Join(err, o.Close()); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	lines, said := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.serve(ctx, said, slog.New(slog.DiscardHandler))
		said.CloseWithError(err)
		ended <- err
	}()
	own.end = func() {
		cancel()
		<-ended
	}
	scan := bufio.NewScanner(lines)
	for scan.Scan() {
		fmt.Fprintln(progress, scan.Text())
		if url, ok := strings.CutPrefix(scan.Text(), "listening on "); ok {
			go io.Copy(io.Discard, lines)
			return url, nil
		}
	}
	cancel()
	return "", <-ended
}
