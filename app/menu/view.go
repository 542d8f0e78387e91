package menu

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Item is one line of the menu. The tree that View returns has the same shape
// for every state (the same IDs in the same order, of the same kinds): a menu
// once made can be appended to and hidden in, but nothing can be removed from
// it or put between. What changes is Title, Tooltip, Enabled, Checked and
// Hidden. Separators can't be hidden, so what is between two of them never is
// altogether.
type Item struct {
	ID        string
	Title     string
	Tooltip   string
	Intent    Msg // nil for a line that informs, and for one with a submenu
	Separator bool
	Checkable bool
	Checked   bool
	Enabled   bool
	Hidden    bool
	Sub       []Item
}

// What the preferences offer. Another value of the preferences file has a line
// of its own.
var (
	MaxSeqs = []int{4096, 8192, 16384, 32768, 65536, 131072, 262144}
	entries = []int{1, 2, 4, 8}
	idles   = []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 0}
)

// View is the menu for a state.
func View(s State) []Item {
	return slices.Concat(
		head(s), []Item{separator("1")},
		engineLines(s), []Item{separator("2")},
		[]Item{modelMenu(s), addressLine(s), copyLine(s), chatLine(s)}, []Item{separator("3")},
		[]Item{errorMenu(s), action("log", "Show Log", ShowLog{}, true), preferences(s), about(s)},
		[]Item{separator("4"), action("quit", "Quit Calla", Quit{}, true)},
	)
}

// head says how things are, why, and what to do about it.
func head(s State) []Item {
	w := words(s)
	return []Item{
		info("status", "Calla: "+w.status),
		info("detail", sentence(w.detail)),
		info("remedy", w.remedy),
		info("memory", memoryLine(s)),
		info("speed", speedLine(s)),
		info("slow", slowLine(s)),
		info("job", besideLine(s)),
		info("stale", staleLine(s)),
		info("mistake", mistakeLine(s)),
		info("note", sentence(s.Note)),
	}
}

func engineLines(s State) []Item {
	stopping := s.Engine == Stopping
	starts := !s.Engine.alive() || s.Engine == Waiting
	start := action("start", "Start Engine", Start{}, s.canStart() && !s.Quitting)
	if s.Engine == Waiting {
		start.Title = "Start Engine Now"
	}
	start.Hidden = !starts
	stop := action("stop", "Stop Engine", Stop{}, !s.Quitting && (!stopping || s.Again))
	stop.Hidden = !s.Engine.alive()
	restart := action("restart", "Restart Engine to Apply Changes", Restart{}, s.modelReady())
	restart.Hidden = !s.Stale()
	download := action("download", "Download Model ("+fileSize(s.About.ModelBytes)+")", Download{}, s.canDownload() && !s.Quitting)
	switch s.Files {
	case Partial:
		download.Title = "Continue Download"
	case Damaged:
		download.Title = "Download What Is Damaged"
	}
	download.Hidden = !(s.Files == Absent || s.Files == Partial || s.Files == Damaged)
	halt := action("halt", "Stop Download", Halt{}, !s.Halting && !s.Quitting)
	halt.Tooltip = "What has arrived is kept"
	if s.Files == Verifying {
		halt.Title, halt.Tooltip = "Stop Verifying", ""
	}
	halt.Hidden = s.Files != Downloading && s.Files != Verifying
	return []Item{start, stop, restart, download, halt}
}

func modelMenu(s State) Item {
	title := "Model: " + modelName(s.About.Model)
	if s.Settings.Demo {
		title = "Model: Demo (Built In)"
	}
	verify := action("verify", "Verify Files", Verify{}, s.canVerify() && !s.Quitting)
	verify.Tooltip = "Compares every byte with the published digests"
	reveal := action("reveal", "Show in "+s.Host.FileManager, Reveal{}, s.Files != Absent && s.Files != Checking)
	remove := action("remove", "Remove…", AskRemove{}, s.canRemove() && !s.Quitting)
	if s.inUse() {
		verify.Tooltip, remove.Tooltip = "Stop the engine first", "Stop the engine first"
	} else if s.Files == Whole && !s.Removable {
		remove.Tooltip = "Another program put these files there"
	}
	demo := check("demo", "Use the Built-In Demo Model", ToggleDemo{}, s.Settings.Demo)
	demo.Tooltip = "Small and quick, to try things out"
	return menu("model", title, info("files", filesLine(s)), verify, reveal, remove, demo)
}

func addressLine(s State) Item {
	if s.URL == "" {
		return info("address", "Address: None While the Engine Is Off")
	}
	return info("address", "Address: "+s.BaseURL())
}

func copyLine(s State) Item {
	return action("copy", "Copy Address", CopyAddress{}, s.URL != "")
}

// chatLine opens the page that the engine serves.
func chatLine(s State) Item {
	return action("chat", "Open Chat", OpenChat{}, s.Engine.serving())
}

func errorMenu(s State) Item {
	lines := errorLines(s)
	var sub []Item
	for i := range errorsKept {
		text := ""
		if i < len(lines) {
			text = lines[i]
		}
		sub = append(sub, info(fmt.Sprintf("error.%d", i), text))
	}
	none := info("error.none", "None Since Calla Was Opened")
	none.Hidden = len(lines) > 0
	return menu("errors", "Recent Errors", append(sub, none)...)
}

// errorLines are the newest errors of the running engine, then how engines
// before it ended.
func errorLines(s State) []string {
	var lines []string
	for l := range strings.Lines(s.Status.Errors) {
		lines = append(lines, strings.TrimSpace(l))
	}
	for _, e := range s.Errors {
		lines = append(lines, e.At.Format("15:04")+"  "+sentence(e.Text))
	}
	return lines[:min(len(lines), errorsKept)]
}

func about(s State) Item {
	return menu("about", "About Calla",
		info("about.version", "Calla "+s.About.Version),
		info("about.model", "Model "+s.About.Model),
		info("about.revision", "Revision "+s.About.Revision),
		info("about.receipt", s.Status.Receipt),
	)
}

func separator(id string) Item { return Item{ID: "separator." + id, Separator: true} }

// info is a line that informs; an empty one is not shown.
func info(id, title string) Item {
	t := clip(title)
	return Item{ID: id, Title: t, Hidden: t == ""}
}

func action(id, title string, intent Msg, enabled bool) Item {
	return Item{ID: id, Title: clip(title), Intent: intent, Enabled: enabled}
}

func check(id, title string, intent Msg, on bool) Item {
	return Item{ID: id, Title: clip(title), Intent: intent, Enabled: true, Checkable: true, Checked: on}
}

func menu(id, title string, sub ...Item) Item {
	return Item{ID: id, Title: clip(title), Enabled: true, Sub: sub}
}
