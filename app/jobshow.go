package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"calla/core/download"
)

// jobShow shows how far work on the model's files is. Its event is called from
// one goroutine at a time.
type jobShow interface {
	event(download.Event)
	end()
}

// newJobShow shows a bar on a terminal, and lines elsewhere: of JSON on the
// command's output, or for people on its errors.
func newJobShow(cmd *cobra.Command, asJSON bool) jobShow {
	out := cmd.ErrOrStderr()
	if asJSON {
		return &jsonShow{out: cmd.OutOrStdout()}
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &barShow{bars: mpb.New(mpb.WithOutput(f), mpb.WithAutoRefresh(), mpb.WithWidth(40))}
	}
	return &lineShow{out: out, every: 5 * time.Second, now: time.Now}
}

// jsonShow prints an event a line, one a second and every change of stage.
type jsonShow struct {
	out  io.Writer
	last download.Stage
	at   time.Time
}

// eventLine is an event as calla pull --json prints it.
type eventLine struct {
	download.Event
	SecondsLeft float64 `json:"seconds_left,omitempty"`
}

func (s *jsonShow) event(e download.Event) {
	if e.Stage == download.StageDone || e.Stage == s.last && e.Note == "" && time.Since(s.at) < time.Second {
		return
	}
	s.last, s.at = e.Stage, time.Now()
	printJSON(s.out, eventLine{e, e.Left.Seconds()})
}

func (s *jsonShow) end() {}

// lineShow prints lines.
type lineShow struct {
	out   io.Writer
	every time.Duration
	now   func() time.Time
	last  download.Stage
	at    time.Time
}

func (s *lineShow) event(e download.Event) {
	if e.Note != "" {
		fmt.Fprintln(s.out, e.Note)
	}
	if e.Total == 0 || e.Stage == download.StageDone || e.Stage == s.last && s.now().Sub(s.at) < s.every {
		return
	}
	s.last, s.at = e.Stage, s.now()
	fmt.Fprintf(s.out, "%s: %s\n", e.Stage, eventText(e))
}

func (s *lineShow) end() {}

// eventText says in words how far things are.
func eventText(e download.Event) string {
	text := fmt.Sprintf("%d %% of %s", e.Done*100/max(e.Total, 1), bytesText(e.Total))
	switch {
	case e.Paused:
		text += ", paused"
	case e.Rate > 0:
		text += fmt.Sprintf(", %.1f MB/s", e.Rate/1e6)
	}
	if e.Left > 0 && !e.Paused {
		text += ", " + leftText(e.Left) + " left"
	}
	return text
}

// leftText rounds a time as far as it is known.
func leftText(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
}

// barShow draws a bar for each stage, and notes above it.
type barShow struct {
	bars  *mpb.Progress
	bar   *mpb.Bar
	stage download.Stage
	text  chan string // the newest, for the bar to draw
}

func (s *barShow) event(e download.Event) {
	if e.Note != "" {
		fmt.Fprintln(s.bars, e.Note)
	}
	if e.Stage != s.stage {
		s.begin(e)
	}
	if s.bar == nil {
		return
	}
	select {
	case <-s.text:
	default:
	}
	s.text <- eventText(e)
	s.bar.SetTotal(e.Total, false)
	s.bar.SetCurrent(e.Done)
}

// begin replaces the bar by that of the next stage. Stages that only ask or end
// have none.
func (s *barShow) begin(e download.Event) {
	s.drop()
	s.stage = e.Stage
	if e.Stage != download.StageCheck && e.Stage != download.StageFetch {
		return
	}
	s.text = make(chan string, 1)
	text, newest := s.text, ""
	s.bar = s.bars.AddBar(e.Total,
		mpb.PrependDecorators(decor.Name(string(e.Stage)+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			select {
			case newest = <-text:
			default:
			}
			return " " + newest
		})),
	)
}

func (s *barShow) drop() {
	if s.bar != nil {
		s.bar.Abort(true)
		s.bar.Wait()
		s.bar = nil
	}
}

func (s *barShow) end() {
	s.drop()
	s.bars.Wait()
}
