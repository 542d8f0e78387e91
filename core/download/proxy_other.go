//go:build !darwin

package download

// systemSettings: only the environment says which proxy to use.
func systemSettings() (proxySettings, bool) { return proxySettings{}, false }
