//go:build linux && tray

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"calla/app/tray/traytest"
)

// From a machine without the model to an answer, and to the end.
func TestMenuFromFirstStartToQuit(t *testing.T) {
	w := newWorld(t)
	w.addPanel()
	w.open("--manifest", w.manifest(), "--endpoint", w.origin.URL, "--port", "0")
	want := `
(Calla: No Model)
(The model is not on this machine yet)
(Download it, or use the built-in demo model)
---
(Start Engine)
Download Model (10.8 MB)
---
Model: Tiny
    (Not downloaded)
    (Verify Files)
    (Show in File Manager)
    (Remove…)
    [ ] Use the Built-In Demo Model
(Address: None While the Engine Is Off)
(Copy Address)
(Open Chat)
---`
	got := w.see("Calla: No Model").String()
	got = regexp.MustCompile(`Model \([0-9.]+ MB\)`).ReplaceAllString(got, "Model (10.8 MB)")
	if d := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got[:strings.Index(got, "Recent")])); d != "" {
		t.Errorf("the menu differs (-want +got):\n%s", d)
	}

	w.click("Download Model")
	w.see("Calla: Downloading")
	w.wait("that the machine is kept awake", func() bool { n, _ := w.power.holders(); return n == 1 })
	w.seeThat("some of it", func(l traytest.Line) bool {
		s, ok := l.Find("Calla: Downloading")
		return ok && s.Label != "Calla: Downloading 0 %"
	})
	w.click("Stop Download")
	w.see("Continue Download")
	w.click("Continue Download")
	w.see("Calla: Downloading")
	close(w.gate)
	w.see("Calla: Ready") // started by itself: the preference says so
	w.wait("that the machine may sleep", func() bool { n, _ := w.power.holders(); return n == 0 })

	w.click("Stop Engine")
	w.see("Calla: Stopped")
	w.damage("chat_template.jinja")
	w.click("Model: Tiny", "Verify Files")
	w.see("Calla: Model Damaged")
	w.see("chat_template.jinja")
	w.click("Download What Is Damaged")
	w.see("Calla: Ready")
	w.see("Memory:")
	w.see("About Calla", "Runs files verified on ")

	testMenuChat(t, w)
	testMenuPreferences(t, w)
	testMenuIdle(t, w)

	w.click("Stop Engine")
	w.see("Calla: Stopped")
	w.click("Start Engine")
	w.see("Calla: Ready")
	pid := w.engine()
	w.quit()
	w.ended(0)
	w.gone(pid)
}

// damage changes a byte of a file of the model, and leaves its time as it was.
func (w *world) damage(name string) {
	w.t.Helper()
	found, err := filepath.Glob(w.path("data/calla/models/*/" + name))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%s: %v, %v", name, found, err)
	}
	info, err := os.Stat(found[0])
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		w.t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := errors.Join(os.WriteFile(found[0], data, 0o644), os.Chtimes(found[0], info.ModTime(), info.ModTime())); err != nil {
		w.t.Fatal(err)
	}
}

// testMenuChat has a chat while the menu shows how quick it is.
func testMenuChat(t *testing.T, w *world) {
	answer, stop := w.stream(t)
	w.see("Calla: Answering at ")
	w.see("Now: prompt ")
	w.wait("that the machine is kept awake", func() bool { n, _ := w.power.holders(); return n == 1 })
	stop()
	io.Copy(io.Discard, answer)
	w.see("Calla: Ready")
	w.wait("that the machine may sleep", func() bool { n, _ := w.power.holders(); return n == 0 })

	const question = `{"model":"calla","temperature":0,"messages":[{"role":"user","content":"What is the capital of France?"}]}`
	w.click("Open Chat")
	if got, want := strings.TrimSpace(w.file("opened")), strings.TrimSuffix(w.base(), "v1"); got != want {
		t.Errorf("Open Chat opens %s, want %s", got, want)
	}
	os.Remove(w.path("opened"))
	response, err := http.Post(w.base()+"/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), "The capital of France is Paris.") {
		t.Errorf("a chat: %s, %v", text, err)
	}
	w.see("Last: prompt ")
	if python := os.Getenv("CALLA_PYTHON"); python != "" {
		out, err := exec.Command(python, "-c", `
import sys
from openai import OpenAI
r = OpenAI(base_url=sys.argv[1], api_key="none").chat.completions.create(
    model="calla", messages=[{"role": "user", "content": "What is the capital of France?"}], temperature=0)
print(r.choices[0].message.content)`, w.base()).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "The capital of France is Paris." {
			t.Errorf("OpenAI's SDK: %s, %v", out, err)
		}
	}
}

// stream begins an answer that goes on until stop.
func (w *world) stream(t *testing.T) (answer *bufio.Reader, stop func()) {
	t.Helper()
	body := `{"model":"calla","stream":true,"max_tokens":6000,"temperature":0,"prompt":"a","logit_bias":{"300":100}}`
	request, err := http.NewRequest(http.MethodPost, w.base()+"/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s: %s", response.Status, text)
	}
	return bufio.NewReader(response.Body), func() { response.Body.Close() }
}

func testMenuPreferences(t *testing.T, w *world) {
	w.click("Preferences", "Context Length", "4K tokens")
	w.see("Changed preferences need a restart of the engine")
	w.see("Preferences", "Context Length", "4K tokens")
	w.restart()
	w.seeThat("that no restart is needed", func(l traytest.Line) bool { _, ok := l.Find("Changed preferences"); return !ok })
	if got := w.status(t, w.base(), "")["model"].(map[string]any)["max_model_len"]; got != 4096.0 {
		t.Errorf("the engine's context is %v, want 4096", got)
	}

	// By hand, with a mistake first.
	path := w.path("config/calla/preferences.txt")
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("max-seq = 4096\ncache-entries = many\n")
	w.see(`Preferences: line 2: cache-entries is "many", want a whole number, 0–64`)
	edit("max-seq = 4096\ncache-entries = 3\n")
	w.see("Preferences", "Remember", "3 conversations")
	w.see("Restart Engine to Apply Changes")

	// A key that we make, and that the engine asks for after its restart.
	w.click("Preferences", "API Key", "Required")
	w.seeThat("a key", func(l traytest.Line) bool {
		k, ok := l.Find("Preferences", "API Key", "Copy Key")
		return ok && k.Enabled
	})
	os.Remove(w.path("clipboard"))
	w.click("Preferences", "API Key", "Copy Key")
	key := strings.TrimSpace(w.file("clipboard"))
	w.restart()
	if got := w.status(t, w.base(), key); got["key_needed"] != true {
		t.Errorf("status with the key: %v", got)
	}
	if response, err := http.Get(w.base() + "/models"); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: %v, %v", response, err)
	}
	w.click("Preferences", "Launch at Login")
	if text := w.file("config/autostart/calla.desktop"); !strings.Contains(text, "Exec=") {
		t.Errorf("autostart file: %s", text)
	}
	w.click("Show Log")
	if got := w.file("opened"); !strings.Contains(got, "calla.log") {
		t.Errorf("opened %s", got)
	}
}

func (w *world) status(t *testing.T, base, key string) (body map[string]any) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, base+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

// testMenuIdle wants an idle menu to cost nothing that people could notice.
func testMenuIdle(t *testing.T, w *world) {
	const span = 5 * time.Second
	time.Sleep(4 * redraw) // of what was clicked
	was, err := w.menu.Read()
	if err != nil {
		t.Fatal(err)
	}
	stop, err := w.menu.Changes()
	if err != nil {
		t.Fatal(err)
	}
	before := ticks(t, w.cmd.Process.Pid)
	time.Sleep(span)
	if n := stop(); n > 0 {
		is, err := w.menu.Read()
		t.Errorf("%d changes of the menu in %v, want none (-was +is), %v:\n%s", n, span, err, cmp.Diff(was.String(), is.String()))
	}
	used := ticks(t, w.cmd.Process.Pid) - before
	resident := residentBytes(t, w.cmd.Process.Pid)
	t.Logf("idle: %.1f %% of a core, %d MB resident", float64(used)/span.Seconds(), resident/1e6) // a tick is 10 ms
	if resident > 80e6 {
		t.Errorf("%d MB resident, want at most 80", resident/1e6)
	}
}

// ticks is the processor time of a process, in hundredths of a second.
func ticks(t *testing.T, pid int) (n int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	for _, f := range fields[11:13] {
		x, _ := strconv.Atoi(f)
		n += x
	}
	return n
}

func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10
}

// An engine that is killed, whatever it does, comes back; an app that is killed
// takes its engine with it, and the next one is not disturbed.
func TestMenuKilled(t *testing.T) {
	w := newWorld(t)
	w.addPanel()
	w.setPreferences(t, "demo = true\nport = 0\n")
	w.open()
	w.see("Calla: Ready")

	kill := func(state string) {
		t.Helper()
		pid := 0
		w.wait("the engine", func() bool { pid = w.engine(); return pid != 0 })
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		w.see("Calla: Starting Again")
		w.see("The engine was ended by signal: killed")
		w.seeThat("the engine after it was killed "+state, func(l traytest.Line) bool {
			_, ready := l.Find("Calla: Ready")
			_, idle := l.Find("Calla: Idle")
			return (ready || idle) && w.engine() != pid
		})
	}
	kill("ready")
	_, stop := w.stream(t)
	w.see("Calla: Answering")
	kill("busy")
	stop()
	w.click("Stop Engine")
	w.see("Calla: Stopped")
	w.click("Start Engine")
	kill("starting")
	w.see("Recent Errors", time.Now().Format("15:")) // of this hour, mostly
	l := listen(t)
	free := port(l)
	l.Close()
	w.setPreferences(t, "demo = true\nport = "+free+"\n")
	w.see("Restart Engine to Apply Changes")
	w.freezeLoading(free)
	kill("loading")
	w.setPreferences(t, "demo = true\nport = 0\nidle-unload = 1s\n")
	w.see("Restart Engine to Apply Changes")
	w.click("Restart Engine to Apply Changes")
	w.see("Calla: Idle, Memory Freed")
	kill("idle, its memory freed")
	w.setPreferences(t, "demo = true\nport = 0\n")
	w.restart()

	// Stopping and killed at once is stopped.
	pid := w.engine()
	w.click("Stop Engine")
	syscall.Kill(pid, syscall.SIGKILL)
	w.see("Calla: Stopped")

	w.click("Start Engine")
	w.see("Calla: Ready")
	_, stop = w.stream(t)
	defer stop()
	w.see("Calla: Answering")
	pid = w.engine()
	w.cmd.Process.Kill()
	<-w.exited
	w.gone(pid)
	w.wait("that the machine may sleep", func() bool { n, ever := w.power.holders(); return n == 0 && ever > 0 })

	w.open()
	w.see("Calla: Ready")
	_, stop = w.stream(t)
	defer stop()
	w.see("Calla: Answering")
	pid = w.engine()
	w.quit() // in the middle of an answer
	w.ended(0)
	w.gone(pid)
}

// freezeLoading starts the engine and stops its process once it has told where
// it listens and nothing more: what the menu knows of it is that it loads. The
// built-in model is loaded too soon to be met at it.
func (w *world) freezeLoading(port string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		w.click("Stop Engine")
		w.see("Calla: Stopped")
		w.click("Start Engine")
		var pid int
		w.wait("the engine", func() bool { pid = w.engine(); return pid != 0 })
		for !asked(w.t, port) && time.Now().Before(end) { // goes on for a moment, and no further
			syscall.Kill(pid, syscall.SIGCONT)
			time.Sleep(200 * time.Microsecond)
			syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(2 * time.Millisecond)
		}
		loading := false
		w.seeThat("an engine that listens", func(l traytest.Line) bool {
			_, loading = l.Find("Calla: Loading")
			_, ready := l.Find("Calla: Ready")
			return loading || ready
		})
		if loading {
			return
		}
		syscall.Kill(pid, syscall.SIGCONT) // it was quicker
	}
	w.t.Fatal("never met the engine while it loads")
}

// asked says whether somebody has connected to a port of this machine.
func asked(t *testing.T, port string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	const established = "01"
	found, err := regexp.Match(fmt.Sprintf(` 0100007F:%04X 0100007F:[0-9A-F]{4} %s `, n, established), table)
	return found && err == nil
}

// A machine that slept goes on where it was: the engine, the answer that was on
// its way and the wish to stay awake are the same, and the menu says so.
func TestMenuWakes(t *testing.T) {
	w := newWorld(t)
	w.addPanel()
	w.setPreferences(t, "demo = true\nport = 0\n")
	w.open()
	w.see("Calla: Ready")
	answer, stop := w.stream(t)
	defer stop()
	w.see("Calla: Answering")
	pid := w.engine()
	line := func() {
		t.Helper()
		if _, err := answer.ReadString('\n'); err != nil {
			t.Fatalf("the answer: %v", err)
		}
	}
	line()
	// For longer than the menu waits for a status.
	asleep := []int{w.cmd.Process.Pid, pid}
	for _, p := range asleep {
		syscall.Kill(p, syscall.SIGSTOP)
	}
	time.Sleep(3 * time.Second)
	for _, p := range asleep {
		syscall.Kill(p, syscall.SIGCONT)
	}
	for range 200 {
		line()
	}
	w.see("Calla: Answering")
	if n, _ := w.power.holders(); n != 1 || w.engine() != pid {
		t.Errorf("after the sleep %d hold the machine awake and the engine is process %d, want 1 and %d", n, w.engine(), pid)
	}
	stop()
	root := w.see("Calla: Ready")
	if _, ok := root.Find("Recent Errors", "None Since Calla Was Opened"); !ok {
		t.Errorf("the sleep left errors:\n%s", root)
	}

	// The engine alone, as one that the system was slow to wake: the menu waits.
	syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	syscall.Kill(pid, syscall.SIGCONT)
	_, stop = w.stream(t)
	defer stop()
	w.see("Calla: Answering")
	if got := w.engine(); got != pid {
		t.Errorf("the engine is process %d, want %d", got, pid)
	}
}

func (w *world) setPreferences(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(w.path("config/calla"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path("config/calla/preferences.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whoever has the port is named, and left alone.
func TestMenuPortTaken(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		take       func(*testing.T, *world) (port string, alive func() bool)
	}{
		{"by a server", "another program, an HTTP server that is not Calla", func(t *testing.T, _ *world) (string, func() bool) {
			l := listen(t)
			go http.Serve(l, http.NotFoundHandler())
			return port(l), answers(l)
		}},
		{"by somebody silent", "another program, which does not speak HTTP", func(t *testing.T, _ *world) (string, func() bool) {
			l := listen(t)
			return port(l), answers(l)
		}},
		{"by another Calla", "another Calla (version", func(t *testing.T, w *world) (string, func() bool) {
			l := listen(t)
			p := port(l)
			l.Close()
			cmd := w.command("serve", "--port", p)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			ready := func() bool {
				r, err := http.Get("http://127.0.0.1:" + p + "/health/live")
				if err != nil {
					return false
				}
				r.Body.Close()
				return true
			}
			w.wait("the other Calla", ready)
			return p, ready
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.addPanel()
			p, alive := tt.take(t, w)
			w.setPreferences(t, "demo = true\nport = "+p+"\n")
			w.open()
			w.see("Calla: Failed")
			w.seeThat(tt.want, func(l traytest.Line) bool {
				return strings.Contains(l.String(), ":"+p+" is in use by "+tt.want)
			})
			w.see("End that program, or choose another port")
			if !alive() {
				t.Error("the other program was disturbed")
			}
			w.quit()
			w.ended(0)
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func port(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

func answers(l net.Listener) func() bool {
	return func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return false
		}
		c.Close()
		return true
	}
}

// A second start finds the first and has it show itself.
func TestMenuStartedTwice(t *testing.T) {
	w := newWorld(t)
	w.addPanel()
	w.setPreferences(t, "demo = true\nport = 0\nstart-engine = false\n")
	w.open()
	w.see("Calla: Stopped")
	out, err := w.command("menu").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "running already") {
		t.Errorf("the second: %s, %v", out, err)
	}
	if got := w.file("asked"); !strings.Contains(got, "Calla is running") {
		t.Errorf("the first shows %s", got)
	}
	w.cmd.Process.Signal(syscall.SIGTERM)
	w.ended(0)
}

// Where no menu can be shown that is said, with a status of its own, and the
// server does not mind.
func TestMenuWithoutDesktop(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		name string
		env  []string
		want string
	}{
		{"no display", []string{"DISPLAY="}, "no display"},
		{"a display that is gone", []string{"DISPLAY=:7777"}, "the display :7777 does not answer"},
		{"no bus", []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere"}, "no D-Bus session bus"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := w.command("menu")
			cmd.Env = append(cmd.Env, tt.env...)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != exitNoDisplay || !strings.Contains(string(out), tt.want) {
				t.Errorf("status %d, %s; want %d, %q", got, out, exitNoDisplay, tt.want)
			}
		})
	}
	t.Run("the server", func(t *testing.T) {
		cmd := w.command("serve", "--port", "0")
		cmd.Env = append(cmd.Env, "DISPLAY=", "DBUS_SESSION_BUS_ADDRESS=")
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		for lines := bufio.NewScanner(said); ; {
			if !lines.Scan() {
				t.Fatal("it is never ready")
			}
			if lines.Text() == "ready" {
				return
			}
		}
	})
	t.Run("no panel", func(t *testing.T) {
		cmd := w.command("menu")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != exitNoDisplay || !strings.Contains(string(out), "the menu can't be shown: tray: no panel of this desktop shows icons") {
			t.Errorf("status %d, %s; want %d and why", got, out, exitNoDisplay)
		}
	})
	t.Run("no panel, and then one", func(t *testing.T) {
		w.setPreferences(t, "demo = true\nport = 0\nstart-engine = false\n")
		w.open()
		w.wait("what it waits for", func() bool {
			return strings.Contains(w.out.String(), "no panel of this desktop shows icons") && strings.Contains(w.out.String(), "waiting 20s for one")
		})
		w.addPanel()
		ctx, cancel := w.context()
		defer cancel()
		var err error
		if w.menu, err = w.panel.Menu(ctx); err != nil {
			t.Fatal(err)
		}
		w.see("Calla: Stopped")
	})
}
