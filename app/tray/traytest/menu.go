//go:build linux

package traytest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

const menuInterface = "com.canonical.dbusmenu"

// Menu is the menu of an icon.
type Menu struct {
	conn   *dbus.Conn
	bus    string
	object dbus.BusObject
}

// Line is one line of a menu, as it is now.
type Line struct {
	id        int32
	Label     string
	Separator bool
	Enabled   bool
	Visible   bool
	Checkable bool
	Checked   bool
	Sub       []Line
}

// layout is what GetLayout returns.
type layout struct {
	ID         int32
	Properties map[string]dbus.Variant
	Children   []dbus.Variant
}

// Read returns the whole menu, as the lines below a root.
func (m *Menu) Read() (Line, error) {
	var l layout
	var revision uint32
	call := m.object.Call(menuInterface+".GetLayout", 0, int32(0), int32(-1), []string{})
	if err := call.Store(&revision, &l); err != nil {
		return Line{}, fmt.Errorf("traytest: layout: %w", err)
	}
	return l.line()
}

func (l layout) line() (Line, error) {
	out := Line{
		id: l.ID, Label: unmarked(value(l, "label", "")), Separator: value(l, "type", "") == "separator",
		Enabled: value(l, "enabled", true), Visible: value(l, "visible", true),
		Checkable: value(l, "toggle-type", "") == "checkmark", Checked: value(l, "toggle-state", int32(0)) == 1,
	}
	for _, v := range l.Children {
		var child layout
		if err := dbus.Store([]any{v.Value()}, &child); err != nil {
			return out, fmt.Errorf("traytest: layout: %w", err)
		}
		c, err := child.line()
		if err != nil {
			return out, err
		}
		out.Sub = append(out.Sub, c)
	}
	return out, nil
}

func value[T any](l layout, name string, otherwise T) T {
	if v, ok := l.Properties[name].Value().(T); ok {
		return v
	}
	return otherwise
}

// unmarked takes out the marks of keys: "_" is one, "__" an underscore.
func unmarked(s string) string {
	parts := strings.Split(s, "__")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "_", "")
	}
	return strings.Join(parts, "_")
}

// Find returns the first visible line that begins so, looked for along
// submenus.
func (l Line) Find(path ...string) (Line, bool) {
	for _, sub := range l.Sub {
		if !sub.Visible || sub.Separator || !strings.HasPrefix(sub.Label, path[0]) {
			continue
		}
		if len(path) == 1 {
			return sub, true
		}
		return sub.Find(path[1:]...)
	}
	return Line{}, false
}

// String draws what is visible below a line. What can't be clicked is in
// parentheses.
func (l Line) String() string {
	var b strings.Builder
	l.draw(&b, "")
	return b.String()
}

func (l Line) draw(b *strings.Builder, indent string) {
	for _, sub := range l.Sub {
		mark, label := "", sub.Label
		switch {
		case !sub.Visible:
			continue
		case sub.Separator:
			label = "---"
		case !sub.Enabled:
			label = "(" + label + ")"
		}
		if sub.Checkable {
			mark = map[bool]string{true: "[x] ", false: "[ ] "}[sub.Checked]
		}
		fmt.Fprintf(b, "%s%s%s\n", indent, mark, label)
		sub.draw(b, indent+"    ")
	}
}

// Click clicks a visible line that is on, as people can.
func (m *Menu) Click(path ...string) error {
	root, err := m.Read()
	if err != nil {
		return err
	}
	line, ok := root.Find(path...)
	if !ok {
		return fmt.Errorf("traytest: no line %q in\n%s", path, root)
	}
	if !line.Enabled {
		return fmt.Errorf("traytest: line %q is off in\n%s", path, root)
	}
	return m.object.Call(menuInterface+".Event", 0, line.id, "clicked", dbus.MakeVariant(int32(0)), uint32(time.Now().Unix())).Err
}

// Until reads the menu until ok holds, and returns it.
func (m *Menu) Until(ctx context.Context, what string, ok func(Line) bool) (Line, error) {
	for {
		root, err := m.Read()
		if err != nil || ok(root) {
			return root, err
		}
		select {
		case <-ctx.Done():
			return root, fmt.Errorf("traytest: never saw %s, but\n%s", what, root)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Changes counts the changes of the menu that its program tells of, until stop
// returns the number.
func (m *Menu) Changes() (stop func() int, err error) {
	match := []dbus.MatchOption{dbus.WithMatchInterface(menuInterface), dbus.WithMatchSender(m.bus)}
	if err := m.conn.AddMatchSignal(match...); err != nil {
		return nil, fmt.Errorf("traytest: %w", err)
	}
	signals, done, count := make(chan *dbus.Signal, 1000), make(chan struct{}), make(chan int, 1)
	m.conn.Signal(signals)
	go func() {
		n := 0
		for {
			select {
			case <-signals:
				n++
			case <-done:
				count <- n
				return
			}
		}
	}()
	return func() int {
		m.conn.RemoveSignal(signals)
		close(done)
		return <-count
	}, nil
}
