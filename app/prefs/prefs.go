// Package prefs is the one list of Calla's preferences: key, default, check and
// help text of each, and the file that people edit.
//
// The list feeds the flags and environment variables of the commands as well,
// so that a setting has one spelling, one check and one explanation
// everywhere. Only the menu reads the file; a command typed in a terminal has
// its flags and its environment. What a preference does belongs to others.
package prefs

import (
	"fmt"
	"slices"
	"strings"
)

// Preference is one setting.
type Preference struct {
	Key     string // in the file, and the name of the flag
	Default string
	Help    string // begins small, without a full stop
	Check   func(string) error
	Menu    bool // of the menu alone: no command has a flag for it
}

// List has every preference, in the order of the file.
var List = []Preference{
	{Key: "max-seq", Default: "0", Check: Whole(0, 1<<20),
		Help: "most tokens of prompt and completion together; 0 takes the model's, at most 32768"},
	{Key: "cache-entries", Default: "2", Check: Whole(0, 64),
		Help: "conversations whose evaluated prompts are kept"},
	{Key: "idle-unload", Default: "30m0s", Check: idle,
		Help: "free the model's memory after this long without a request, or never"},
	{Key: "prefill-chunk", Default: "2048", Check: multiple(64, 64, 1<<16),
		Help: "most prompt tokens evaluated in one go, a multiple of 64"},
	{Key: "queue", Default: "64", Check: Whole(0, 1<<16),
		Help: "requests that may wait; more are refused"},
	{Key: "backend", Default: "auto", Check: oneOf("auto", "cpu", "metal", "emulated", "cuda"),
		Help: "what computes: auto, cpu, metal, emulated or cuda"},
	{Key: "host", Default: "localhost", Check: host,
		Help: "address to listen at; localhost is both 127.0.0.1 and ::1"},
	{Key: "port", Default: "11535", Check: Whole(0, 65535),
		Help: "port to listen at; 0 takes a free one"},
	{Key: "key-file", Default: "", Check: anything,
		Help: "file with the key that requests must carry, readable by its owner alone"},
	{Key: "open-models", Default: "false", Check: yesOrNo,
		Help: "true lists the model without the key too, for apps that look for one first, as Xcode does"},
	{Key: "allow-host", Default: "", Check: each(hostName),
		Help: "further names by which requests may call this server, separated by commas"},
	{Key: "allow-origin", Default: "", Check: each(origin),
		Help: "web pages that may call, such as https://example.org, separated by commas"},
	{Key: "dir", Default: "", Check: anything,
		Help: "folder of the downloaded model (default the system's for a program's data)"},
	{Key: "endpoint", Default: "", Check: address,
		Help: "where the model is downloaded from (default Hugging Face)"},
	{Key: "demo", Default: "false", Check: yesOrNo, Menu: true,
		Help: "true starts the small built-in model instead of the downloaded one"},
	{Key: "start-engine", Default: "true", Check: yesOrNo, Menu: true,
		Help: "true starts the engine as soon as Calla opens"},
}

// Find returns the preference of a key.
func Find(key string) (Preference, bool) {
	i := slices.IndexFunc(List, func(p Preference) bool { return p.Key == key })
	if i < 0 {
		return Preference{}, false
	}
	return List[i], true
}

// Must returns the preference of a key that is in the list.
func Must(key string) Preference {
	p, ok := Find(key)
	if !ok {
		panic("prefs: no preference is called " + key)
	}
	return p
}

// Env is the environment variable of a flag: CALLA_MAX_SEQ of max-seq.
func Env(key string) string {
	return "CALLA_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// Values are preferences that have been checked. A key without a value has its
// default.
type Values map[string]string

// Get returns the value of a key of the list.
func (v Values) Get(key string) string {
	if s, ok := v[key]; ok {
		return s
	}
	return Must(key).Default
}

// Mistake is something wrong in the file. What it is about has its default.
type Mistake struct {
	Line int // from 1
	Says string
}

func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Says) }
