//go:build cgo && (darwin || (linux && tray))

package tray

import (
	"os"
	"runtime"
	"strings"

	"github.com/getlantern/systray"

	"calla/app/menu"
)

// Run shows the menu bar's icon until Quit. It must be called from main, once
// in a process. ready is called when the menu can be shown, exit when it is
// going away, be it by Quit or because people log out; on macOS nothing of this
// process runs after exit, and exit must not wait for anything that draws.
func Run(o Options, ready func(*Tray), exit func()) error {
	t := newTray(system{})
	restore := withoutGL()
	systray.Run(func() {
		restore()
		systray.SetTemplateIcon(o.Template, o.Icon)
		systray.SetTooltip(o.Tooltip)
		go t.draw()
		ready(t)
	}, func() {
		t.Stop()
		exit()
	})
	return nil
}

// withoutGL keeps GTK from loading OpenGL, more than 50 MB that a menu has no
// use for. It is undone before other programs are started.
func withoutGL() (restore func()) {
	const variable = "GDK_GL"
	if _, set := os.LookupEnv(variable); set || runtime.GOOS != "linux" {
		return func() {}
	}
	os.Setenv(variable, "disable")
	return func() { os.Unsetenv(variable) }
}

// Quit ends Run.
func Quit() { systray.Quit() }

// system is the library's menu.
type system struct{}

func (system) separate() { systray.AddSeparator() }

func (system) add(parent line, it menu.Item) (line, <-chan struct{}) {
	var m *systray.MenuItem
	title := label(it.Title)
	switch above, _ := parent.(item); {
	case parent == nil && it.Checkable:
		m = systray.AddMenuItemCheckbox(title, it.Tooltip, it.Checked)
	case parent == nil:
		m = systray.AddMenuItem(title, it.Tooltip)
	case it.Checkable:
		m = above.AddSubMenuItemCheckbox(title, it.Tooltip, it.Checked)
	default:
		m = above.AddSubMenuItem(title, it.Tooltip)
	}
	// A click is dropped unless somebody receives at that moment, so there is
	// room for a burst. The call after it takes the library's lock, by which
	// the thread of the clicks sees the new channel.
	m.ClickedCh = make(chan struct{}, 16)
	m.Enable()
	return item{m}, m.ClickedCh
}

// item is a line of the library's.
type item struct{ *systray.MenuItem }

func (i item) SetTitle(title string) { i.MenuItem.SetTitle(label(title)) }

// label writes a title so that it is shown as it is: panels on Linux take an
// underscore for the mark of a key.
func label(title string) string {
	if runtime.GOOS != "linux" {
		return title
	}
	return strings.ReplaceAll(title, "_", "__")
}
