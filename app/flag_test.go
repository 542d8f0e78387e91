package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"calla/app/prefs"
	"calla/core/engine"
)

// Package prefs knows nothing of the engine, so what it says of the engine's
// defaults is compared here.
func TestDefaultsAreTheEngines(t *testing.T) {
	for key, want := range map[string]string{
		"prefill-chunk": strconv.Itoa(engine.DefaultPrefillChunk),
		"cache-entries": strconv.Itoa(engine.DefaultCacheEntries),
		"queue":         strconv.Itoa(engine.DefaultQueue),
		"idle-unload":   engine.DefaultIdleUnload.String(),
	} {
		if got := prefs.Must(key).Default; got != want {
			t.Errorf("%s: default %s, the engine's is %s", key, got, want)
		}
	}
	help := "most tokens of prompt and completion together; 0 takes the model's, at most " + strconv.Itoa(engine.DefaultMaxSeq)
	if got := prefs.Must("max-seq").Help; got != help {
		t.Errorf("max-seq: help %q, want %q", got, help)
	}
}

// A flag wins over the environment, and that over the default.
func TestPrecedence(t *testing.T) {
	type set struct {
		Seq  int
		Idle time.Duration
		Web  []string
		Open bool
	}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want set
		err  string
	}{
		{"nothing", nil, nil, set{Idle: engine.DefaultIdleUnload}, ""},
		{"environment", nil, map[string]string{"CALLA_MAX_SEQ": "7", "CALLA_IDLE_UNLOAD": "never", "CALLA_ALLOW_ORIGIN": "https://a.b, https://c.d"},
			set{Seq: 7, Web: []string{"https://a.b", "https://c.d"}}, ""},
		{"flags over the environment", []string{"--max-seq=8", "--allow-origin=https://x.y", "--allow-origin=https://z.w"},
			map[string]string{"CALLA_MAX_SEQ": "7", "CALLA_ALLOW_ORIGIN": "https://a.b"},
			set{Seq: 8, Idle: engine.DefaultIdleUnload, Web: []string{"https://x.y", "https://z.w"}}, ""},
		{"a switch alone", []string{"--open-models"}, nil, set{Idle: engine.DefaultIdleUnload, Open: true}, ""},
		{"a switch with its value", []string{"--open-models=false"}, map[string]string{"CALLA_OPEN_MODELS": "true"}, set{Idle: engine.DefaultIdleUnload}, ""},
		{"a switch by the environment", nil, map[string]string{"CALLA_OPEN_MODELS": "true"}, set{Idle: engine.DefaultIdleUnload, Open: true}, ""},
		{"a bad flag", []string{"--max-seq=many"}, nil, set{Idle: engine.DefaultIdleUnload},
			`invalid argument "many" for "--max-seq" flag: want a whole number, 0–1048576`},
		{"a bad variable", nil, map[string]string{"CALLA_MAX_SEQ": "-1"}, set{Idle: engine.DefaultIdleUnload},
			`environment variable CALLA_MAX_SEQ: invalid argument "-1" for "--max-seq" flag: want a whole number, 0–1048576`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got set
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			bind(f, "max-seq", &got.Seq)
			bind(f, "idle-unload", &got.Idle)
			bind(f, "allow-origin", &got.Web)
			bind(f, "open-models", &got.Open)
			err := f.Parse(tt.args)
			if err == nil {
				err = environment(f, func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok })
			}
			says := ""
			if err != nil {
				says = err.Error()
			}
			if d := cmp.Diff(tt.err, says); d != "" {
				t.Errorf("error differs (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("settings differ (-want +got):\n%s", d)
			}
		})
	}
}
