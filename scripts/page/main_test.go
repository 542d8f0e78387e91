package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"calla/scripts/process"
)

// root is the repository's, seen from this package.
const root = "../.."

var (
	served *process.Server // the process that most tests talk to
	binary string          // what it runs
	chrome context.Context // of the browser that all tests share
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "page: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests with a server and a browser of their own, and prints the
// server's log where something failed.
func run(m *testing.M) (code int, err error) {
	chromium, err := findChromium()
	if err != nil {
		fmt.Printf("SKIP: %v\n", err)
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "calla-page-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if binary, err = process.Binary(root, dir); err != nil {
		return 0, err
	}
	var log bytes.Buffer
	defer func() {
		if code != 0 || err != nil {
			for line := range bytes.Lines(log.Bytes()) {
				if !bytes.Contains(line, []byte("level=INFO")) { // requests that were answered
					os.Stderr.Write(line)
				}
			}
		}
	}()
	if served, err = process.Start(&log, binary, "serve", "--model", "demo", "--port", "0"); err != nil {
		return 0, err
	}
	var end func()
	if chrome, end, err = startChromium(chromium, filepath.Join(dir, "profile")); err != nil {
		return 0, err
	}
	code = m.Run()
	end()
	return code, served.Interrupt()
}

func findChromium() (string, error) {
	if name := os.Getenv("CALLA_CHROMIUM"); name != "" {
		return exec.LookPath(name)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("needs Chromium: CALLA_CHROMIUM names it, or it is on the path")
}

// startChromium starts a browser that asks for nothing but what tests ask for.
func startChromium(path, profile string) (context.Context, func(), error) {
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("no-proxy-server", true),
		// A machine with a mouse, which headless Chromium says it has not.
		chromedp.Flag("blink-settings", "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"),
		chromedp.Flag("lang", "en"),
		chromedp.WindowSize(1280, 860))
	ctx, cancel := chromedp.NewContext(alloc)
	end := func() {
		cancel()
		cancelAlloc()
	}
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, end, nil
}
