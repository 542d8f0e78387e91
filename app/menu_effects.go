package main

import (
	"strings"

	"calla/app/menu"
)

// perform carries out one effect. What takes long goes on beside; what fails is
// told in the menu.
func (a *app) perform(e menu.Effect) {
	switch e := e.(type) {
	case menu.StartEngine:
		a.startEngine(e.Settings)
	case menu.StopEngine:
		a.engine.Stop(e.Soon)
	case menu.StartDownload:
		a.files.start(a, a.pull)
	case menu.StartVerify:
		a.files.start(a, a.verify)
	case menu.StartRemove:
		a.files.start(a, a.remove)
	case menu.HaltJob:
		a.files.halt()
	case menu.Store:
		a.setPreference(e.Key, e.Value)
	case menu.SetLogin:
		a.try("launch at login", a.login.Set(e.On))
		go a.sendLate(a.readLogin)
	case menu.SetKey:
		a.setKey(e.On)
	case menu.MakeKey:
		a.makeKey()
	case menu.KeepAwake:
		a.keepAwake(e.On)
	default:
		go a.ask(e)
	}
}

// ask carries out what people and other programs have a part in.
func (a *app) ask(e menu.Effect) {
	switch e := e.(type) {
	case menu.Ask:
		yes, err := a.desktop.Ask(e.Title, e.Text, e.Button)
		if a.try("ask", err) && yes {
			a.send(e.Then)
		}
	case menu.CopyText:
		a.try("copy", a.desktop.Copy(e.Text))
	case menu.OpenPage:
		a.try("open the chat", a.desktop.Open(e.URL))
	case menu.TakeKey:
		key, err := a.key()
		if a.try("read the key", err) {
			a.try("copy", a.desktop.Copy(key))
		}
	case menu.RevealFiles:
		a.try("show the files", a.desktop.Reveal(a.files.folder()))
	case menu.OpenPreferences:
		a.openPreferences()
	case menu.OpenLog:
		a.try("open the log", a.desktop.Open(a.folders.log))
	}
}

// try tells in the menu and in the log what could not be done.
func (a *app) try(what string, err error) (ok bool) {
	if err == nil {
		return true
	}
	a.log.Warn("menu: could not "+what, "error", err)
	text := "could not " + what + ": " + strings.TrimPrefix(err.Error(), "desktop: ")
	go a.send(menu.Trouble{Text: text})
	return false
}

// keepAwake is a courtesy: a system that can't do it is no trouble to tell of.
func (a *app) keepAwake(on bool) {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	if !on {
		return
	}
	release, err := a.desktop.Awake("Calla is working")
	if err != nil {
		a.log.Info("menu: the machine may fall asleep meanwhile", "error", err)
		return
	}
	a.release = release
}

func (a *app) readLogin() menu.Msg {
	on, refused, err := a.login.State()
	if err != nil {
		refused = err.Error()
	}
	return menu.LoginRead{Login: menu.Login{On: on, Refused: refused}}
}
