//go:build linux

package traytest

import (
	"context"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
	"github.com/godbus/dbus/v5/prop"
)

const (
	watcher     = "org.kde.StatusNotifierWatcher"
	watcherPath = dbus.ObjectPath("/StatusNotifierWatcher")
)

// Icon is where a tray icon answers.
type Icon struct {
	bus  string
	path dbus.ObjectPath
}

// Panel shows tray icons, by the StatusNotifierItem specification.
type Panel struct {
	conn  *dbus.Conn
	icons chan Icon
}

// NewPanel makes the session have a panel.
func (s *Session) NewPanel() (*Panel, error) {
	p := &Panel{conn: s.Conn, icons: make(chan Icon, 16)}
	properties, err := prop.Export(s.Conn, watcherPath, prop.Map{watcher: {
		"RegisteredStatusNotifierItems":  {Value: []string{}, Emit: prop.EmitTrue},
		"IsStatusNotifierHostRegistered": {Value: true, Emit: prop.EmitTrue},
		"ProtocolVersion":                {Value: int32(0), Emit: prop.EmitTrue},
	}})
	if err != nil {
		return nil, err
	}
	about := introspect.NewIntrospectable(&introspect.Node{Name: string(watcherPath), Interfaces: []introspect.Interface{
		introspect.IntrospectData, prop.IntrospectData,
		{Name: watcher, Methods: introspect.Methods(p), Properties: properties.Introspection(watcher)},
	}})
	if err := s.Conn.Export(p, watcherPath, watcher); err != nil {
		return nil, err
	}
	if err := s.Conn.Export(about, watcherPath, "org.freedesktop.DBus.Introspectable"); err != nil {
		return nil, err
	}
	reply, err := s.Conn.RequestName(watcher, dbus.NameFlagDoNotQueue)
	if err != nil {
		return nil, err
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return nil, fmt.Errorf("traytest: the session has a panel")
	}
	return p, nil
}

// RegisterStatusNotifierItem is called by programs, with an object's path or
// with the name of a bus connection.
func (p *Panel) RegisterStatusNotifierItem(sender dbus.Sender, where string) *dbus.Error {
	icon := Icon{where, "/StatusNotifierItem"}
	if strings.HasPrefix(where, "/") {
		icon = Icon{string(sender), dbus.ObjectPath(where)}
	}
	p.icons <- icon
	return nil
}

// RegisterStatusNotifierHost is called by other panels.
func (p *Panel) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

// Menu waits for the next icon and returns its menu.
func (p *Panel) Menu(ctx context.Context) (*Menu, error) {
	select {
	case icon := <-p.icons:
		v, err := p.conn.Object(icon.bus, icon.path).GetProperty("org.kde.StatusNotifierItem.Menu")
		if err != nil {
			return nil, fmt.Errorf("traytest: menu: %w", err)
		}
		path, ok := v.Value().(dbus.ObjectPath)
		if !ok {
			return nil, fmt.Errorf("traytest: the menu is a %T", v.Value())
		}
		return &Menu{p.conn, icon.bus, p.conn.Object(icon.bus, path)}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("traytest: no icon: %w", ctx.Err())
	}
}
