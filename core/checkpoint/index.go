package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	indexFile  = "model.safetensors.index.json"
	singleFile = "model.safetensors"
)

// index says which shard holds which tensor.
type index struct {
	shards []string // sorted
	// shardOf has the shard of each tensor, and is nil for a checkpoint of one
	// file without an index.
	shardOf map[string]string
}

// readIndex finds the shards of a checkpoint among its files.
func readIndex(src Source, files []string) (index, error) {
	v, ok, err := readOptional(src, indexFile)
	if err != nil {
		return index{}, err
	}
	var x index
	if ok {
		if x, err = parseIndex(v); err != nil {
			return index{}, fmt.Errorf("%s: %w", indexFile, err)
		}
	} else if slices.Contains(files, singleFile) {
		x.shards = []string{singleFile}
	}
	return x, x.checkFiles(files)
}

func parseIndex(v value) (index, error) {
	weights, _ := v.get("weight_map")
	if !weights.isObject() {
		return index{}, errors.New("no weight_map, want an object")
	}
	x := index{shardOf: map[string]string{}}
	shards := map[string]bool{}
	for name, m := range weights.members() {
		shard, _ := m.text()
		if !strings.HasSuffix(shard, ".safetensors") || strings.ContainsAny(shard, `/\`) {
			return index{}, fmt.Errorf("tensor %s is in %v, want the name of a safetensors file", quote(name), m)
		}
		x.shardOf[name] = shard
		shards[shard] = true
	}
	if len(shards) == 0 {
		return index{}, errors.New("an empty weight_map")
	}
	x.shards = slices.Sorted(maps.Keys(shards))
	return x, nil
}

// checkFiles compares the shards with the files that are there.
func (x index) checkFiles(files []string) error {
	for i, shard := range x.shards {
		if !slices.Contains(files, shard) {
			return fmt.Errorf("%s is missing, shard %d of %d: an incomplete download", shard, i+1, len(x.shards))
		}
	}
	for _, name := range files {
		isShard, _ := path.Match("model*.safetensors", name)
		switch {
		case !isShard || slices.Contains(x.shards, name):
		case len(x.shards) == 0:
			return fmt.Errorf("%s is missing, but there is %s: an incomplete download", indexFile, name)
		default:
			return fmt.Errorf("%s is not in %s, want the shards of one checkpoint", name, indexFile)
		}
	}
	if len(x.shards) == 0 {
		if what := identifyFolder(files); what != "" {
			return fmt.Errorf("no safetensors files: %s; %s", what, wanted)
		}
		return fmt.Errorf("no model*.safetensors; %s", wanted)
	}
	return nil
}

// check compares the tensors of one shard with the index.
func (x index) check(shard string, entries []entry) error {
	if x.shardOf == nil {
		return nil
	}
	for i := range entries {
		name := entries[i].name
		switch in, ok := x.shardOf[name]; {
		case !ok:
			return fmt.Errorf("tensor %s is not in %s", quote(name), indexFile)
		case in != shard:
			return fmt.Errorf("tensor %s is in %s by %s", quote(name), in, indexFile)
		}
	}
	return nil
}

// checkComplete checks that the shards have all tensors that the index lists.
// Their tensors are all in the index, so it is enough to count.
func (x index) checkComplete(shards []*shard) error {
	have := 0
	for _, s := range shards {
		have += len(s.entries)
	}
	if have >= len(x.shardOf) {
		return nil
	}
	left := maps.Clone(x.shardOf)
	for _, s := range shards {
		for i := range s.entries {
			delete(left, s.entries[i].name)
		}
	}
	name := slices.Min(slices.Collect(maps.Keys(left)))
	return fmt.Errorf("%s: tensor %s is missing, but %s lists it; %d are missing in all", left[name], quote(name), indexFile, len(left))
}
