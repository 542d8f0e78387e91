package menu

import (
	"fmt"
	"slices"
	"time"
)

// preferences is the submenu of what can be set. What asks for another value
// than those offered stands in the preferences file.
func preferences(s State) Item {
	return menu("preferences", "Preferences",
		contexts(s),
		conversations(s.Settings.CacheEntries),
		idleUnload(s.Settings.IdleUnload),
		check("start-engine", "Start Engine When Calla Opens", ToggleStart{}, s.Settings.StartEngine),
		launchAtLogin(s.Login),
		keyMenu(s),
		action("edit", "Edit Preferences File…", EditPreference{}, true),
	)
}

// contexts offers lengths with the memory they need.
func contexts(s State) Item {
	var sub []Item
	for _, n := range MaxSeqs {
		c := Choice{Tokens: n}
		if i := slices.IndexFunc(s.Choices, func(c Choice) bool { return c.Tokens == n }); i >= 0 {
			c = s.Choices[i]
		}
		line := check(fmt.Sprintf("max-seq.%d", n), choiceTitle(c), SetMaxSeq{n}, n == s.Settings.MaxSeq)
		line.Enabled = c.Why == ""
		sub = append(sub, line)
	}
	own := s.Settings.MaxSeq
	sub = append(sub, other("max-seq.other", thousands(own)+" tokens", own == 0 || slices.Contains(MaxSeqs, own)))
	m := menu("max-seq", "Context Length", sub...)
	m.Tooltip = "The most tokens of a conversation, with the memory that it needs at most"
	return m
}

func choiceTitle(c Choice) string {
	t := fmt.Sprintf("%dK tokens", c.Tokens/1024)
	if c.Bytes > 0 {
		t += ", " + memorySize(c.Bytes)
	}
	if c.Why != "" {
		t += ": " + c.Why
	}
	return t
}

func conversations(now int) Item {
	var sub []Item
	for _, n := range entries {
		title := fmt.Sprintf("%d conversations", n)
		if n == 1 {
			title = "1 conversation"
		}
		sub = append(sub, check(fmt.Sprintf("cache-entries.%d", n), title, SetEntries{n}, n == now))
	}
	sub = append(sub, other("cache-entries.other", fmt.Sprintf("%d conversations", now), slices.Contains(entries, now)))
	m := menu("cache-entries", "Remember", sub...)
	m.Tooltip = "Conversations that go on without being read again"
	return m
}

func idleUnload(now time.Duration) Item {
	var sub []Item
	for _, d := range idles {
		sub = append(sub, check("idle-unload."+idleValue(d), idleTitle(d), SetIdle{d}, d == now))
	}
	sub = append(sub, other("idle-unload.other", idleTitle(now), slices.Contains(idles, now)))
	return menu("idle-unload", "Free Memory When Idle", sub...)
}

func idleTitle(d time.Duration) string {
	if d == 0 {
		return "Never"
	}
	return "After " + span(d)
}

// other is the line of a value that is not offered.
func other(id, title string, hidden bool) Item {
	return Item{ID: id, Title: title, Checkable: true, Checked: true, Hidden: hidden}
}

func launchAtLogin(l Login) Item {
	line := check("login", "Launch at Login", ToggleLogin{}, l.On)
	if l.Refused != "" {
		line.Title, line.Enabled = clip("Launch at Login: "+l.Refused), false
	}
	return line
}

func keyMenu(s State) Item {
	take := action("key.copy", "Copy Key", CopyKey{}, s.Settings.Key)
	fresh := action("key.new", "New Key", NewKey{}, true)
	fresh.Tooltip = "Programs with the old key are refused from then on"
	return menu("key", "API Key", check("key.on", "Required", ToggleKey{}, s.Settings.Key), fresh, take)
}
