package main

import (
	"testing"
	"time"

	"calla/core/server"
)

func TestReceiptText(t *testing.T) {
	at := time.Date(2026, 5, 2, 12, 0, 0, 0, time.Local)
	const digest = "sha256:0123456789abcdef"
	for _, tt := range []struct {
		name    string
		receipt server.Receipt
		want    string
	}{
		{"built in", server.Receipt{Source: server.BuiltIn, Digest: digest}, "Runs the built-in demo model, digest 0123456789ab"},
		{"downloaded", server.Receipt{Source: server.Downloaded, VerifiedAt: &at, Digest: digest}, "Runs files verified on 2 May 2026, digest 0123456789ab"},
		{"at an unknown time", server.Receipt{Source: server.Found, Digest: digest}, "Runs verified files, digest 0123456789ab"},
		{"never verified", server.Receipt{Source: server.Unverified}, "Runs files that were never verified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := receiptText(tt.receipt); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadingOfHeat(t *testing.T) {
	for _, tt := range []struct {
		thermal string
		saving  bool
		hot     bool
	}{
		{"", false, false}, {"nominal", true, false}, {"fair", false, false}, {"serious", false, true}, {"critical", true, true},
	} {
		got := reading(server.Status{Throughput: server.Throughput{Thermal: tt.thermal, LowPower: tt.saving}})
		if got.Hot != tt.hot || got.Saving != tt.saving {
			t.Errorf("%q, %v: hot %v, saving %v; want %v, %v", tt.thermal, tt.saving, got.Hot, got.Saving, tt.hot, tt.saving)
		}
	}
}
