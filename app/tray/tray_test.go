package tray

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/app/menu"
)

// fakeBar is a menu that behaves as the two systems do at their worst: a change
// shows a hidden line, and a click toggles a check box.
type fakeBar struct {
	t     *testing.T
	calls int
	root  []*fakeLine
}

type fakeLine struct {
	bar                     *fakeBar
	title, tip              string
	enabled, checked, shown bool
	clicked                 chan struct{}
	sub                     []*fakeLine
}

func (b *fakeBar) separate() {
	b.root = append(b.root, &fakeLine{title: "---", enabled: true, shown: true})
}

func (b *fakeBar) add(parent line, it menu.Item) (line, <-chan struct{}) {
	l := &fakeLine{bar: b, title: it.Title, tip: it.Tooltip, checked: it.Checked, enabled: true, shown: true, clicked: make(chan struct{}, 16)}
	if p, ok := parent.(*fakeLine); ok {
		p.sub = append(p.sub, l)
	} else {
		b.root = append(b.root, l)
	}
	return l, l.clicked
}

// set is a call that must change something, and shows the line.
func set[T comparable](l *fakeLine, what string, at *T, to T) {
	l.bar.calls++
	if *at == to {
		l.bar.t.Errorf("%s of %q is set to what it is", what, l.title)
	}
	*at, l.shown = to, true
}

func (l *fakeLine) SetTitle(s string)   { set(l, "title", &l.title, s) }
func (l *fakeLine) SetTooltip(s string) { set(l, "tooltip", &l.tip, s) }
func (l *fakeLine) Enable()             { set(l, "enabled", &l.enabled, true) }
func (l *fakeLine) Disable()            { set(l, "enabled", &l.enabled, false) }
func (l *fakeLine) Check()              { set(l, "checked", &l.checked, true) }
func (l *fakeLine) Uncheck()            { set(l, "checked", &l.checked, false) }
func (l *fakeLine) Show()               { l.bar.calls++; l.shown = true }
func (l *fakeLine) Hide() {
	l.bar.calls++
	if !l.shown {
		l.bar.t.Errorf("%q is hidden twice", l.title)
	}
	l.shown = false
}

// seen is what people see of lines.
func seen(lines []*fakeLine, indent string) (out []string) {
	for _, l := range lines {
		if l.shown {
			out = append(out, fmt.Sprintf("%s%s|%s|%v|%v", indent, l.title, l.tip, l.enabled, l.checked))
			out = append(out, seen(l.sub, indent+" ")...)
		}
	}
	return out
}

// wanted is what people are to see of a view.
func wanted(items []menu.Item, indent string) (out []string) {
	for _, it := range items {
		switch {
		case it.Separator:
			out = append(out, indent+"---||true|false")
		case !it.Hidden:
			out = append(out, fmt.Sprintf("%s%s|%s|%v|%v", indent, it.Title, it.Tooltip, it.Enabled, it.Checked))
			out = append(out, wanted(it.Sub, indent+" ")...)
		}
	}
	return out
}

var messages = []menu.Msg{
	menu.FilesFound{Files: menu.Whole, Removable: true}, menu.FilesFound{Files: menu.Damaged, Reason: "x"}, menu.Download{}, menu.Verify{},
	menu.JobProgress{Progress: menu.Progress{Done: 1, Total: 2, Rate: 3}}, menu.Start{}, menu.Stop{}, menu.Ended{Cause: menu.Port, Reason: "y"},
	menu.Ended{}, menu.Listening{URL: "http://127.0.0.1:1"}, menu.Observed{Status: menu.Status{State: menu.Ready, MemoryNeeded: 5 << 20}},
	menu.Observed{Status: menu.Status{State: menu.Busy, DecodeNow: 100, MemoryNeeded: 5 << 20}}, menu.Crashed{Reason: "z"}, menu.Relaunched{},
	menu.SetMaxSeq{Tokens: 8192}, menu.SetEntries{Entries: 4}, menu.ToggleKey{}, menu.ToggleLogin{}, menu.Trouble{Text: "t"}, menu.ShowLog{},
	menu.LoginRead{Login: menu.Login{Refused: "r"}}, menu.LoginRead{},
}

// Whatever happens, the real menu shows the view, and no call is made that
// changes nothing.
func TestDrawing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := &fakeBar{t: t}
	tr := newTray(b)
	defer tr.Stop()
	s := menu.State{Files: menu.Checking, Engine: menu.Off}
	tr.build(nil, menu.View(s))
	for range 1500 {
		s, _ = menu.Update(s, messages[r.IntN(len(messages))])
		tr.apply(menu.View(s))
		if d := cmp.Diff(wanted(menu.View(s), ""), seen(b.root, "")); d != "" {
			t.Fatalf("the menu differs from the view (-want +got):\n%s", d)
		}
	}
	before := b.calls
	tr.apply(menu.View(s))
	if b.calls != before {
		t.Errorf("%d calls for no change", b.calls-before)
	}
}

func TestClicks(t *testing.T) {
	b := &fakeBar{t: t}
	tr := newTray(b)
	defer tr.Stop()
	tr.build(nil, []menu.Item{
		{ID: "a", Title: "A", Intent: menu.ShowLog{}, Enabled: true},
		{ID: "b", Title: "B", Intent: menu.ToggleKey{}, Enabled: true, Checkable: true},
	})
	// Ten clicks before anybody looks: none is lost.
	for range 10 {
		b.root[0].clicked <- struct{}{}
	}
	for range 10 {
		if got := <-tr.Clicks(); got != (menu.ShowLog{}) {
			t.Errorf("click gives %T", got)
		}
	}
	// The system may have toggled a box that was clicked: it is set anew.
	b.root[1].clicked <- struct{}{}
	<-tr.Clicks()
	if got := <-tr.marks; got != "b" {
		t.Errorf("line %q is marked anew, want b", got)
	}
}
