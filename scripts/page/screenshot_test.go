package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestScreenshot makes the README's pictures, of a conversation with the demo
// model:
//
//	CALLA_SCREENSHOTS=../../docs go test -run TestScreenshot
//
// The letters are those of the machine: on Debian, fonts-inter, fonts-ebgaramond
// and fonts-jetbrains-mono come near to a Mac's.
func TestScreenshot(t *testing.T) {
	dir := os.Getenv("CALLA_SCREENSHOTS")
	if dir == "" {
		t.Skip("makes pictures where CALLA_SCREENSHOTS names a folder for them")
	}
	b := open(t, served.URL, "/")
	b.run(sized(1180, 840, 1.5))
	for _, question := range []string{"Is 17 a prime number?", "List three fruits.", "What is 347 + 586?"} {
		b.asked(question)
		b.click("#new-chat")
		b.wait(`!document.querySelector('.message')`)
	}
	b.asked("Write a haiku about autumn.")
	b.click("#think")
	b.asked("Write a Go function for factorial")
	b.wait(`document.querySelector('#engine-state').textContent === 'Ready'`)
	for _, scheme := range []string{"light", "dark"} {
		b.run(media("prefers-color-scheme", scheme))
		picture(t, b, filepath.Join(dir, "page-"+scheme+".png"))
	}
}

func picture(t *testing.T, b *tab, file string) {
	t.Helper()
	js[bool](b, `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true), 300)))`)
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		t.Fatal(err)
	}
}
