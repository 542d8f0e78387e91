//go:build cgo && (darwin || (linux && tray))

package tray

import (
	"github.com/getlantern/systray"

	"calla/app/menu"
)

// Run shows the menu bar's icon until Quit. It must be called from main, once
// in a process. ready is called when the menu can be shown, exit when it is
// going away, be it by Quit or because people log out; on macOS nothing of this
// process runs after exit, and exit must not wait for anything that draws.
func Run(o Options, ready func(*Tray), exit func()) error {
	t := newTray(system{})
	systray.Run(func() {
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

// Quit ends Run.
func Quit() { systray.Quit() }

// system is the library's menu.
type system struct{}

func (system) separate() { systray.AddSeparator() }

func (system) add(parent line, it menu.Item) (line, <-chan struct{}) {
	var m *systray.MenuItem
	above, _ := parent.(*systray.MenuItem)
	switch {
	case above == nil && it.Checkable:
		m = systray.AddMenuItemCheckbox(it.Title, it.Tooltip, it.Checked)
	case above == nil:
		m = systray.AddMenuItem(it.Title, it.Tooltip)
	case it.Checkable:
		m = above.AddSubMenuItemCheckbox(it.Title, it.Tooltip, it.Checked)
	default:
		m = above.AddSubMenuItem(it.Title, it.Tooltip)
	}
	// A click is dropped unless somebody receives at that moment, so there is
	// room for a burst. The call after it takes the library's lock, by which
	// the thread of the clicks sees the new channel.
	m.ClickedCh = make(chan struct{}, 16)
	m.Enable()
	return m, m.ClickedCh
}
