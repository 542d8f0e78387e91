// Package tray shows a menu.Item tree in the menu bar.
//
// It is thin: what is shown and what a click means is decided in package menu.
// What it does besides is to step around the edges of the library below it:
//   - one goroutine makes all calls: a line has no lock of its own;
//   - the tree's shape never changes: nothing can be removed or put between;
//   - a hidden line is left alone: on Linux any change shows it again;
//   - a check box that was clicked is set anew: GTK toggles it, macOS doesn't;
//   - nothing is set to what it is already: on macOS each call waits for the
//     main thread;
//   - clicks have room to wait in: the library drops one that nobody waits for.
package tray

import (
	"errors"
	"sync"

	"calla/app/menu"
)

// ErrNone is the error of a build without a menu bar.
var ErrNone = errors.New("tray: this build has no menu: build with cgo, and on Linux with -tags tray")

// Options are what the menu bar shows besides the menu. The icons must stay as
// they are for the life of the process.
type Options struct {
	Icon     []byte // PNG in colour
	Template []byte // PNG in black, of which macOS takes the shape
	Tooltip  string
}

// line is one line of the real menu.
type line interface {
	SetTitle(string)
	SetTooltip(string)
	Enable()
	Disable()
	Check()
	Uncheck()
	Show()
	Hide()
}

// bar is the real menu.
type bar interface {
	separate()
	// add appends a line, below a parent if not nil, and returns where its
	// clicks come.
	add(parent line, it menu.Item) (line, <-chan struct{})
}

// Tray is the one menu of the process.
type Tray struct {
	bar    bar
	shows  chan []menu.Item // the newest counts
	marks  chan string      // IDs of check boxes that were clicked
	clicks chan menu.Msg
	done   chan struct{}
	once   sync.Once
	lines  map[string]*drawn
}

// drawn is a line and what it shows. A hidden one keeps what it showed.
type drawn struct {
	line
	item menu.Item
}

func newTray(b bar) *Tray {
	return &Tray{
		bar: b, shows: make(chan []menu.Item, 1), marks: make(chan string, 64), clicks: make(chan menu.Msg, 64),
		done: make(chan struct{}), lines: map[string]*drawn{},
	}
}

// Clicks gives the intents of the lines that people click.
func (t *Tray) Clicks() <-chan menu.Msg { return t.clicks }

// Show puts a view in the place of the one shown, without waiting. One
// goroutine may call it at a time; a view that was not drawn yet is dropped for
// a newer one.
func (t *Tray) Show(v []menu.Item) {
	select {
	case <-t.shows:
	default:
	}
	t.shows <- v
}

// Stop ends the drawing.
func (t *Tray) Stop() { t.once.Do(func() { close(t.done) }) }

// draw draws views until Stop.
func (t *Tray) draw() {
	for {
		select {
		case <-t.done:
			return
		case v := <-t.shows:
			if len(t.lines) == 0 {
				t.build(nil, v)
			} else {
				t.apply(v)
			}
		case id := <-t.marks:
			if d := t.lines[id]; !d.item.Hidden {
				d.mark(d.item.Checked)
			}
		}
	}
}

func (t *Tray) build(parent line, items []menu.Item) {
	for _, it := range items {
		if it.Separator {
			t.bar.separate()
			continue
		}
		l, clicked := t.bar.add(parent, it)
		if !it.Enabled {
			l.Disable()
		}
		if it.Hidden {
			l.Hide()
		}
		t.lines[it.ID] = &drawn{l, it}
		t.build(l, it.Sub)
		if len(it.Sub) == 0 {
			go t.listen(it, clicked)
		}
	}
}

// listen passes on the clicks of a line. Its intent never changes.
func (t *Tray) listen(it menu.Item, clicked <-chan struct{}) {
	for {
		select {
		case <-t.done:
			return
		case <-clicked:
		}
		if it.Intent != nil {
			select {
			case t.clicks <- it.Intent:
			default: // so many wait that more won't help
			}
		}
		if it.Checkable {
			select {
			case t.marks <- it.ID:
			default:
			}
		}
	}
}

// apply makes the lines show a view, by the changes alone.
func (t *Tray) apply(items []menu.Item) {
	for _, it := range items {
		if it.Separator {
			continue
		}
		d := t.lines[it.ID]
		switch {
		case it.Hidden && !d.item.Hidden:
			d.Hide()
			d.item.Hidden = true
		case !it.Hidden:
			d.become(it)
		}
		t.apply(it.Sub)
	}
}

// become changes what differs of a line that is to be seen.
func (d *drawn) become(it menu.Item) {
	was := d.item
	d.item = it
	if it.Title != was.Title {
		d.SetTitle(it.Title)
	}
	if it.Tooltip != was.Tooltip {
		d.SetTooltip(it.Tooltip)
	}
	if it.Enabled != was.Enabled {
		d.enable(it.Enabled)
	}
	if it.Checkable && it.Checked != was.Checked {
		d.mark(it.Checked)
	}
	if was.Hidden {
		d.Show()
	}
}

func (d *drawn) enable(on bool) {
	if on {
		d.Enable()
	} else {
		d.Disable()
	}
}

func (d *drawn) mark(on bool) {
	if on {
		d.Check()
	} else {
		d.Uncheck()
	}
}
