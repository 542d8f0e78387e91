package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"calla/app/desktop"
	"calla/app/menu"
	"calla/app/prefs"
	"calla/app/supervise"
	"calla/app/tray"
	"calla/bundle/icons"
	"calla/core/download"
)

// exitNoDisplay is the status where no menu can be shown.
const exitNoDisplay = 69

// lastWait bounds how long the engine may keep the app at its end.
const lastWait = 3 * time.Second

func newMenu() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use:   "menu",
		Short: "Show Calla in the menu bar",
		Long: "Shows Calla in the menu bar, from where the engine is started and the model\n" +
			"downloaded. Flags and environment win over the preferences file.",
		Args: cobra.NoArgs,
	}
	for _, p := range prefs.List {
		if !p.Menu {
			var unused string
			bind(cmd.Flags(), p.Key, &unused) // read by given
		}
	}
	cmd.Flags().StringVar(&manifest, "manifest", "", "file that pins another model, of any size, in place of the published one (for tests and mirrors)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runMenu(cmd.Context(), cmd.ErrOrStderr(), given(cmd.Flags()), manifest)
	}
	return cmd
}

// given are the preferences that flags or the environment set.
func given(f *pflag.FlagSet) prefs.Values {
	v := prefs.Values{}
	f.Visit(func(flag *pflag.Flag) {
		if _, ok := prefs.Find(flag.Name); ok {
			v[flag.Name] = flag.Value.String()
		}
	})
	return v
}

// runMenu is the app, until people quit it or ctx ends. It must be on the main
// thread.
func runMenu(ctx context.Context, out io.Writer, over prefs.Values, manifest string) error {
	if err := showable(ctx, out); err != nil {
		return noDisplay{err}
	}
	a, err := newApp(over, manifest)
	if errors.Is(err, supervise.ErrClaimed) {
		fmt.Fprintln(out, "calla: Calla is running already; its menu is in the menu bar")
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close()
	o := tray.Options{Icon: icons.Menu, Template: icons.Template, Tooltip: "Calla"}
	err = tray.Run(o, func(t *tray.Tray) { a.begin(ctx, t) }, a.end)
	if errors.Is(err, tray.ErrNone) {
		return noDisplay{err}
	}
	return err
}

// panelWait is how long a panel may take to come: when people log in it may
// start after Calla.
const panelWait = 20 * time.Second

// showable says why the menu can't be shown.
func showable(ctx context.Context, out io.Writer) error {
	err := tray.Preflight(os.Getenv)
	if errors.Is(err, tray.ErrNoPanel) {
		fmt.Fprintf(out, "calla: %v; waiting %v for one\n", err, panelWait)
	}
	for end := time.Now().Add(panelWait); errors.Is(err, tray.ErrNoPanel) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(redraw)
		err = tray.Preflight(os.Getenv)
	}
	return err
}

// noDisplay is a menu that can't be shown.
type noDisplay struct{ error }

func (e noDisplay) Error() string {
	return fmt.Sprintf("the menu can't be shown: %v; calla serve runs the engine without it", e.error)
}

// app carries out what the menu decides. The goroutine of loop owns the state;
// the others only send messages.
type app struct {
	folders  folders
	program  string // this one
	about    menu.About
	manifest download.Manifest
	foreign  bool // another manifest than the published one
	store    download.Store
	desktop  desktop.Desktop
	login    desktop.Login
	claim    *supervise.Claim
	engine   *supervise.Engine
	logFile  *logFile
	log      *slog.Logger
	choices  choices

	messages chan func() menu.Msg // called by loop, so that what is read is the newest
	done     chan struct{}        // closed when loop is over

	prefs   preferences
	files   files
	release func() // of the wish to stay awake, or nil
}

func newApp(over prefs.Values, manifest string) (*app, error) {
	a := &app{messages: make(chan func() menu.Msg, 256), done: make(chan struct{}), desktop: desktop.New()}
	var err error
	if a.folders, err = findFolders(); err != nil {
		return nil, err
	}
	if a.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if a.manifest, err = readManifest(manifest); err != nil {
		return nil, usageError{err}
	}
	a.foreign = manifest != ""
	if a.claim, err = supervise.NewClaim(a.folders.data); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(a.folders.log), 0o700); err != nil {
		return nil, err
	}
	if a.logFile, err = openLog(a.folders.log); err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	a.log = slog.New(slog.NewTextHandler(a.logFile, nil))
	a.login = desktop.NewLogin(a.program, os.Getenv, home)
	a.store = download.NewStore(a.folders.data)
	a.prefs = preferences{path: a.folders.preferences, over: over}
	a.engine = supervise.New(supervise.Default, a.logFile, a.engineEvent)
	a.about = menu.About{
		Version: strings.TrimSpace(version + " " + parenthesised(revision())),
		Model:   a.manifest.Repository, Revision: a.manifest.Revision, ModelBytes: a.manifest.Bytes(),
	}
	return a, nil
}

func parenthesised(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

func readManifest(path string) (download.Manifest, error) {
	if path == "" {
		return download.Pinned(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return download.Manifest{}, err
	}
	defer f.Close()
	return download.ParseManifest(f)
}

// begin starts what sends messages.
func (a *app) begin(ctx context.Context, t *tray.Tray) {
	s := menu.State{
		Host:  menu.Host{Name: desktop.Here.Machine, FileManager: desktop.Here.FileManager},
		About: a.about, Files: menu.Checking, Engine: menu.Off,
	}
	s.Host.Memory = a.choices.memory()
	s, _ = menu.Update(s, a.readPreferences())
	s, _ = menu.Update(s, a.readLogin())
	go a.loop(s, t.Show)
	go a.pass(t.Clicks())
	go a.watch()
	go a.tellFiles()
	context.AfterFunc(ctx, func() { a.send(menu.Quit{}) })
}

// send hands the loop a message, from any goroutine but the loop's own.
func (a *app) send(m menu.Msg) { a.sendLate(func() menu.Msg { return m }) }

// sendLate hands the loop a message that is made when its turn has come. What
// reads files that the loop writes comes by this way.
func (a *app) sendLate(m func() menu.Msg) {
	select {
	case a.messages <- m:
	case <-a.done:
	}
}

func (a *app) pass(clicks <-chan menu.Msg) {
	for {
		select {
		case m := <-clicks:
			a.send(m)
		case <-a.done:
			return
		}
	}
}

// watch looks once a second whether people saved the preferences file or
// changed the login item, and tells those who start Calla twice where it is.
func (a *app) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if a.prefs.changed() {
				a.sendLate(a.readPreferences)
				if !a.files.busy() {
					a.tellFiles() // in another folder, perhaps
				}
			}
		case <-a.claim.Calls():
			go a.desktop.Tell("Calla is running", "Its menu is the flower in the menu bar.")
		case <-a.done:
			return
		}
	}
}

// redraw is the least time between two drawings.
const redraw = 250 * time.Millisecond

// loop owns the state until there is nothing left to do.
func (a *app) loop(s menu.State, show func([]menu.Item)) {
	defer tray.Quit()
	defer close(a.done)
	defer a.keepAwake(false)
	show(menu.View(s))
	last := time.Now()
	var later <-chan time.Time
	for {
		select {
		case <-later:
			later, last = nil, time.Now()
			show(menu.View(s))
		case m := <-a.messages:
			var effects []menu.Effect
			s, effects = menu.Update(s, m())
			for _, e := range effects {
				if _, ok := e.(menu.Exit); ok {
					return
				}
				a.perform(e)
			}
			if later == nil {
				later = time.After(max(redraw-time.Since(last), 0))
			}
		}
	}
}

// end is called when the menu goes, also where people log out. Nothing in it
// waits for the menu.
func (a *app) end() {
	a.files.halt()
	a.engine.Stop(true)
	ctx, cancel := context.WithTimeout(context.Background(), lastWait)
	defer cancel()
	if err := a.engine.Wait(ctx); err != nil {
		a.log.Error("engine: still there at the end", "error", err)
	}
}

func (a *app) close() {
	a.claim.Release()
	a.logFile.Close()
}

// inBundle says whether a program is the one of an app bundle, which shows its
// menu where it is started without arguments.
func inBundle(program string) bool {
	return strings.HasSuffix(filepath.Dir(program), ".app/Contents/MacOS")
}
