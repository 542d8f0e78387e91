package menu

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// longest is how many characters a line of the menu has at most.
const longest = 120

// clip makes any text fit for a line: valid UTF-8 (other text makes an empty
// line on one system and ends the program on another), no control characters,
// no line breaks, not too long.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= longest {
		return text
	}
	return string([]rune(text)[:longest-1]) + "…"
}

// sentence begins a text as one, unless its first word is a name such as
// config.json or max-seq.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) || word == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func percent(done, total int64) string {
	if total <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", int(100*float64(min(max(done, 0), total))/float64(total)))
}

// fileSize writes a size on disk as file managers do, in powers of ten.
func fileSize(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f KB", float64(max(n, 0))/1e3)
}

// memorySize writes a size in memory, in powers of two.
func memorySize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%.0f MiB", float64(max(n, 0))/(1<<20))
	}
}

// rate writes tokens a second.
func rate(r float64) string {
	if r < 10 {
		return fmt.Sprintf("%.1f tok/s", r)
	}
	return thousands(int(r+0.5)) + " tok/s"
}

// thousands writes a number with a comma after every third digit.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// span writes a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	case d%time.Hour < time.Minute:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
