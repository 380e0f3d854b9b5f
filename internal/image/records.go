package image

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
)

// mostLearned is how many secrets a record may name before it no longer learns of others
// from pods that were let in without a pull.
const mostLearned = 100

// records remember on disk which images were pulled by a kubelet and with whose
// credentials, in the reference kubelet's files: an intent while a pull is underway, so
// that an image which arrives after a crash is not taken for one that was always there, and
// a record once it has succeeded.
type records struct {
	pulling, pulled string // directories
	clock           clock.PassiveClock

	// mu guards the files too. They are small, and are touched once per container's start.
	mu       sync.Mutex
	underway map[string]int // pulls by the image's name
}

func openRecords(dir string, clock clock.PassiveClock) (*records, error) {
	r := &records{pulling: filepath.Join(dir, "pulling"), pulled: filepath.Join(dir, "pulled"), clock: clock, underway: map[string]int{}}
	for _, d := range []string{r.pulling, r.pulled} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("open records of image pulls: %w", err)
		}
	}
	return r, nil
}

// begin notes that an image is about to be pulled. end must follow.
func (r *records) begin(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	intent := kubelet.ImagePullIntent{TypeMeta: typeMeta("ImagePullIntent"), Image: image}
	if err := save(r.pulling, image, intent); err != nil {
		return fmt.Errorf("record image pull intent: %w", err)
	}
	r.underway[image]++
	return nil
}

// end drops the note of a pull that failed, or whose record is written.
func (r *records) end(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underway[image]--; r.underway[image] > 0 {
		return nil
	}
	delete(r.underway, image)
	return checkpoint.Remove(filepath.Join(r.pulling, fileOf(image)))
}

// intended reports whether a pull of one of these names was begun and never seen to end.
func (r *records) intended(names ...string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		var intent kubelet.ImagePullIntent
		switch err := load(r.pulling, name, &intent); {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return false, err
		case err == nil && intent.Image == name:
			return true, nil
		}
	}
	return false, nil
}

// find is the record of an image by the runtime's reference; nil where there is none.
func (r *records) find(ref string) (*kubelet.ImagePulledRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load(ref)
}

func (r *records) load(ref string) (*kubelet.ImagePulledRecord, error) {
	record := &kubelet.ImagePulledRecord{}
	err := load(r.pulled, ref, record)
	if errors.Is(err, os.ErrNotExist) || err == nil && record.ImageRef != ref {
		return nil, nil
	}
	return record, err
}

// add notes who may use an image of this name (without tag and digest) as well. A record
// that cannot be read is replaced.
func (r *records) add(name, ref string, grant kubelet.ImagePullCredentials) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, err := r.load(ref)
	if err != nil || record == nil {
		record = &kubelet.ImagePulledRecord{ImageRef: ref}
	}
	merged, changed := merge(record.CredentialMapping[name], grant)
	if !changed {
		return nil
	}
	record.TypeMeta = typeMeta("ImagePulledRecord")
	record.LastUpdatedTime = metav1.Time{Time: r.clock.Now()}
	if record.CredentialMapping == nil {
		record.CredentialMapping = map[string]kubelet.ImagePullCredentials{}
	}
	record.CredentialMapping[name] = merged
	if err := save(r.pulled, ref, record); err != nil {
		return fmt.Errorf("record that an image was pulled: %w", err)
	}
	return nil
}

// prune drops the records of images that are gone: of all but the given ones, those that
// were last written before the given time. What cannot be read is of no use to anybody.
func (r *records) prune(keep []string, before time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := map[string]bool{}
	for _, ref := range keep {
		kept[fileOf(ref)] = true
	}
	files, err := os.ReadDir(r.pulled)
	if err != nil {
		return fmt.Errorf("prune records of images: %w", err)
	}
	var failures []error
	for _, f := range files {
		path := filepath.Join(r.pulled, f.Name())
		var record kubelet.ImagePulledRecord
		data, err := os.ReadFile(path)
		fresh := err == nil && json.Unmarshal(data, &record) == nil && !record.LastUpdatedTime.Time.Before(before)
		if !kept[f.Name()] && !fresh {
			failures = append(failures, checkpoint.Remove(path))
		}
	}
	return errors.Join(failures...)
}

// count is how many intents and records there are.
func (r *records) count() (intents, records int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	underway, _ := os.ReadDir(r.pulling) // what cannot be read is not counted
	done, _ := os.ReadDir(r.pulled)
	return len(underway), len(done)
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: kubelet.SchemeGroupVersion.String()}
}

// fileOf is the name of the file about something that may hold slashes.
func fileOf(subject string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(subject))) }

func save(dir, subject string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return checkpoint.Replace(filepath.Join(dir, fileOf(subject)), append(data, '\n'), 0o600)
}

func load(dir, subject string, into any) error {
	path := filepath.Join(dir, fileOf(subject))
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
