package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"calla/app/menu"
	"calla/app/prefs"
)

// preferences are those in force: of flags and environment, else of the file.
type preferences struct {
	path string
	over prefs.Values // of flags and environment

	mu     sync.Mutex
	values prefs.Values
	stamp  string // of the file when it was read
	trial  string // of the file when it was last looked at
}

func (p *preferences) get() prefs.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values
}

// load reads the file.
func (p *preferences) load() (prefs.Values, []prefs.Mistake, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stamp = stampOf(p.path)
	values, mistakes, err := prefs.Load(p.path)
	maps.Copy(values, p.over)
	p.values = values
	return values, mistakes, err
}

// changed says whether the file is another than the one that was read, and no
// longer being written.
func (p *preferences) changed() bool {
	now := stampOf(p.path)
	p.mu.Lock()
	defer p.mu.Unlock()
	settled := now == p.trial
	p.trial = now
	return settled && now != p.stamp
}

// stampOf tells whether a file was changed, without reading it.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// readPreferences reads the file for the menu.
func (a *app) readPreferences() menu.Msg {
	values, mistakes, err := a.prefs.load()
	out := menu.PreferencesRead{}
	if err != nil {
		a.log.Error("preferences", "error", err)
		out.Mistakes = append(out.Mistakes, strings.TrimPrefix(err.Error(), "prefs: "))
	}
	for _, m := range mistakes {
		out.Mistakes = append(out.Mistakes, m.String())
	}
	out.Settings = a.settings(values)
	out.Choices = a.choices.of(a, values)
	return out
}

// settings are the values that the menu knows one by one, and the others as one
// text.
func (a *app) settings(v prefs.Values) menu.Settings {
	s := menu.Settings{
		Demo: v.Get("demo") == "true", StartEngine: v.Get("start-engine") == "true",
		Key: v.Get("key-file") != "",
	}
	s.CacheEntries, _ = strconv.Atoi(v.Get("cache-entries")) // checked
	s.IdleUnload, _ = prefs.Idle(v.Get("idle-unload"))
	s.MaxSeq = a.choices.maxSeq(a, v)
	s.Rest = strings.Join(otherArgs(v), " ") + " " + digestOf(v.Get("key-file"))
	return s
}

// digestOf tells one key from another without keeping it.
func digestOf(path string) string {
	if path == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// setPreference sets one, unless flags or the environment have the last word.
func (a *app) setPreference(key, value string) {
	if _, fixed := a.prefs.over[key]; fixed {
		a.try("change "+key, fmt.Errorf("--%s or %s is set", key, prefs.Env(key)))
	} else {
		a.try("save the preferences", prefs.Store(a.prefs.path, key, value))
	}
	go a.sendLate(a.readPreferences)
}

// openPreferences makes the file first, where there is none.
func (a *app) openPreferences() {
	if a.try("make the preferences file", prefs.Create(a.prefs.path)) {
		a.try("open the preferences file", a.desktop.Open(a.prefs.path))
	}
}
