package download

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places returns the folders in which other programs of a person keep models:
// the caches of the Hugging Face Hub and of LM Studio. getenv is os.Getenv.
func Places(getenv func(string) string, home string) []string {
	first := func(paths ...string) string {
		i := slices.IndexFunc(paths, func(p string) bool { return p != "" })
		return paths[i]
	}
	below := func(dir, rest string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, rest)
	}
	cache := first(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	return []string{
		first(getenv("HF_HUB_CACHE"), getenv("HUGGINGFACE_HUB_CACHE"), below(getenv("HF_HOME"), "hub"), filepath.Join(cache, "huggingface", "hub")),
		filepath.Join(home, ".lmstudio", "models"),
		filepath.Join(home, ".cache", "lm-studio", "models"),
	}
}

// candidates returns the files below a place that may be f, by their names
// alone. The place may be a folder with the files themselves, a repository in a
// Hub cache, or a folder of either kind of cache.
func candidates(m Manifest, f File, place string) []string {
	out := []string{filepath.Join(place, f.Name)}
	repository := func(dir string, sameRevision bool) {
		if sameRevision {
			out = append(out, filepath.Join(dir, "snapshots", m.Revision, f.Name))
		}
		// A blob is named by its digest, so revision and repository don't matter.
		for _, digest := range []string{f.SHA256, f.GitSHA1} {
			if digest != "" {
				out = append(out, filepath.Join(dir, "blobs", digest))
			}
		}
	}
	repository(place, true)
	for i, r := range append([]string{m.Repository}, m.Mirrors...) {
		repository(filepath.Join(place, "models--"+strings.ReplaceAll(r, "/", "--")), i == 0)
		out = append(out, filepath.Join(place, filepath.FromSlash(r), f.Name))
	}
	return out
}

// search returns the candidates for f in all places that are files of its size,
// each file once, and none that is in folder itself.
func search(m Manifest, f File, places []string, folder string) []string {
	var paths []string
	var seen []os.FileInfo
	if own, err := os.Stat(filepath.Join(folder, f.Name)); err == nil {
		seen = append(seen, own)
	}
	for _, place := range places {
		for _, path := range candidates(m, f, place) {
			info, err := statFile(path)
			if err != nil || info.Size() != f.Size {
				continue
			}
			if slices.ContainsFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, info) }) {
				continue
			}
			seen = append(seen, info)
			paths = append(paths, path)
		}
	}
	return paths
}
