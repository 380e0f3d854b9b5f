package standalone

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swiftlet/internal/boundedio"
)

// pulls measures image pulls by what containerd writes to its content store, as CRI does not report progress. It
// is for one goroutine.
type pulls struct {
	store string

	began  time.Time        // when the pulls that run began; zero if there are none
	layers map[string]int64 // sizes of the layers that they read, by digest, as far as manifests have arrived
	known  map[string]bool  // blobs that are not manifests of these pulls
	last   pulled
	at     time.Time
}

// pulled is how much of the images is there.
type pulled struct {
	bytes, total int64   // total is 0 while no manifest has arrived
	rate         float64 // bytes per second
}

const (
	// maxManifest is more than a manifest of an image has.
	maxManifest = 256 << 10
	// maxLayer is more than a layer has. The sizes of all layers of a manifest add up to an int64.
	maxLayer = 1 << 48
)

func newPulls(p Paths) *pulls {
	return &pulls{store: filepath.Join(p.containerdRoot(), "io.containerd.content.v1.content")}
}

// read returns the progress of all pulls together; running is false if there are none.
func (p *pulls) read(now time.Time) (progress pulled, running bool) {
	writes := p.writes()
	if len(writes) == 0 {
		p.began = time.Time{}
		return pulled{}, false
	}
	if p.began.IsZero() {
		*p = pulls{store: p.store, began: now, layers: map[string]int64{}, known: map[string]bool{}, at: now}
	}
	p.findLayers(writes)
	for digest, size := range p.layers {
		progress.total += size
		if _, err := os.Stat(p.blob(digest)); err == nil {
			progress.bytes += size
		}
	}
	for _, n := range writes {
		progress.bytes += n
	}
	if past := now.Sub(p.at); past >= time.Second {
		progress.rate = max(0, float64(progress.bytes-p.last.bytes)/past.Seconds())
		p.last, p.at = progress, now
	}
	progress.rate = p.last.rate
	return progress, true
}

func (p *pulls) blob(digest string) string { return filepath.Join(p.store, "blobs", "sha256", digest) }

// writes returns the bytes of each blob that is being written, by digest.
func (p *pulls) writes() map[string]int64 {
	writes := map[string]int64{}
	dirs, err := os.ReadDir(filepath.Join(p.store, "ingest"))
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		dir := filepath.Join(p.store, "ingest", d.Name())
		ref, err := boundedio.ReadFile(filepath.Join(dir, "ref"), boundedio.Small)
		if err != nil {
			continue // it has just ended
		}
		_, digest, found := strings.Cut(string(ref), "layer-sha256:") // others are small
		info, err := os.Stat(filepath.Join(dir, "data"))
		if digest = strings.TrimSpace(digest); found && isSHA256(digest) && err == nil {
			writes[digest] = info.Size()
		}
	}
	return writes
}

// findLayers adds the layers of manifests that have arrived, if one of their layers is being written. A layer that
// was there before is not read.
func (p *pulls) findLayers(writes map[string]int64) {
	blobs, err := os.ReadDir(filepath.Join(p.store, "blobs", "sha256"))
	if err != nil {
		return
	}
	for _, b := range blobs {
		if p.known[b.Name()] {
			continue
		}
		info, err := b.Info()
		if err != nil {
			continue
		}
		sizes := p.layersOf(b, info)
		reads := false
		for digest := range sizes {
			_, writing := writes[digest]
			reads = reads || writing
		}
		if !reads {
			// An old manifest may be that of a pull whose first layer begins later.
			p.known[b.Name()] = sizes == nil
			continue
		}
		p.known[b.Name()] = true
		for digest, size := range sizes {
			if present, err := os.Stat(p.blob(digest)); err != nil || !present.ModTime().Before(p.began.Add(-time.Second)) {
				p.layers[digest] = size
			}
		}
	}
}

// layersOf returns the sizes of the layers of a manifest, nil for another blob.
func (p *pulls) layersOf(b fs.DirEntry, info fs.FileInfo) map[string]int64 {
	if info.Size() > maxManifest {
		return nil
	}
	content, err := boundedio.ReadFile(p.blob(b.Name()), maxManifest)
	if err != nil {
		return nil
	}
	return layersIn(content)
}

// layersIn reads the digests and sizes of a manifest, nil for another document. A registry has written it: digests
// become paths, so what is none is left out, as is a size that no layer has.
func layersIn(content []byte) map[string]int64 {
	var manifest struct {
		Layers []struct {
			Digest string `json:"digest"`
			Size   int64  `json:"size"`
		} `json:"layers"`
	}
	if json.Unmarshal(content, &manifest) != nil || len(manifest.Layers) == 0 {
		return nil
	}
	sizes := map[string]int64{}
	for _, l := range manifest.Layers {
		digest, found := strings.CutPrefix(l.Digest, "sha256:")
		if found && isSHA256(digest) && l.Size >= 0 && l.Size <= maxLayer {
			sizes[digest] = l.Size
		}
	}
	return sizes
}

func isSHA256(text string) bool {
	return len(text) == 64 && !strings.ContainsFunc(text, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// String says what is known: the total is not until the first manifest is there.
func (p pulled) String() string {
	text := fmt.Sprintf("pulling images: %.1f MB", float64(p.bytes)/1e6)
	if p.total > 0 {
		text += fmt.Sprintf(" of %.1f MB", float64(max(p.total, p.bytes))/1e6)
	}
	if p.rate > 0 {
		text += fmt.Sprintf(", %.1f MB/s", p.rate/1e6)
	}
	return text
}
