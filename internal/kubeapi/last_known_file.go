package kubeapi

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"swiftlet/internal/checkpoint"
)

// content is the content of the file.
type content struct {
	NodeName string `json:"nodeName"`
	// Contact is the time of the last contact with the API server. The time of the file's last
	// modification is later if there was contact without a change.
	Contact time.Time `json:"contact"`
	// Objects are the objects of each watch, by its name.
	Objects map[string][]json.RawMessage `json:"objects"`
	Tokens  []savedToken                 `json:"tokens,omitempty"`
}

func (c content) empty() bool { return len(c.Objects) == 0 }

// load reads the file. Without a usable one nothing is known, and the agent waits for the API server.
func (k *LastKnown) load() content {
	var c content
	err := checkpoint.Read(k.cfg.path(), &c)
	switch {
	case errors.Is(err, checkpoint.ErrMissing):
		return content{}
	case err != nil:
		k.deps.Log.Warn("last-known state: read file failed, pods wait for the API server", "err", err)
		return content{}
	case c.NodeName != k.cfg.NodeName:
		k.deps.Log.Warn("last-known state: file is of another node, pods wait for the API server", "path", k.cfg.path(), "node", c.NodeName)
		return content{}
	}
	if info, err := os.Stat(k.cfg.path()); err == nil && info.ModTime().After(c.Contact) {
		c.Contact = info.ModTime()
	}
	return c
}

// save writes the file, if the API server has listed this node's pods. It returns the time until the next
// write.
func (k *LastKnown) save() time.Duration {
	c, ok := k.collect()
	if !ok {
		return 0 // the list is a change
	}
	if err := checkpoint.Write(k.cfg.path(), c); err != nil {
		k.deps.Log.Warn("last-known state: write file failed", "err", err)
		k.changed.Notify()
		return saveRetry
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded = content{}
	return saveEvery
}

// collect returns what is known now. Objects of a watch without a list of the API server are still those of
// the file.
func (k *LastKnown) collect() (content, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	namespaces, listed := k.namespaces()
	if !listed {
		return content{}, false
	}
	c := content{NodeName: k.cfg.NodeName, Contact: k.deps.Clock.Now(), Objects: map[string][]json.RawMessage{}}
	for name, s := range k.stores {
		if objects, ok := s.encode(namespaces); ok {
			c.Objects[name] = objects
		} else if before, ok := k.loaded.Objects[name]; ok {
			c.Objects[name] = before
		}
	}
	if k.tokens != nil {
		c.Tokens = k.tokens.toSave()
	}
	return c, true
}

// namespaces are those of this node's pods; false before the API server has listed them.
func (k *LastKnown) namespaces() (map[string]bool, bool) {
	found := map[string]bool{"default": true} // has the API server's own Service
	for _, name := range slices.Sorted(maps.Keys(k.stores)) {
		s := k.stores[name]
		if !s.hasPods {
			continue
		}
		if !s.listed.Load() {
			return nil, false
		}
		for _, o := range s.inner.Known() {
			found[o.GetNamespace()] = true
		}
		return found, true
	}
	return nil, false
}

// touch records the time of contact in the file's time of modification, so that an idle node writes no data.
func (k *LastKnown) touch() {
	now := k.deps.Clock.Now()
	if err := os.Chtimes(k.cfg.path(), now, now); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.deps.Log.Warn("last-known state: write time of contact failed", "err", err)
	}
}
