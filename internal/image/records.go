package image

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
)

// maxRecordedSecrets is the number of secrets in a record from which on mayUse adds no more.
const maxRecordedSecrets = 100

// records persist which images a kubelet pulled and with which credentials, in the reference
// kubelet's file format: an intent while a pull is in progress, so that an image whose pull a
// crash interrupted is not taken for a preloaded one, and a record after the pull succeeded.
type records struct {
	pulling, pulled string // directories
	clock           clock.PassiveClock

	// mu guards the files too. They are small, and used once per container start.
	mu         sync.Mutex
	inProgress map[string]int // number of pulls by image name
}

func openRecords(dir string, clock clock.PassiveClock, log *slog.Logger) (*records, error) {
	r := &records{pulling: filepath.Join(dir, "pulling"), pulled: filepath.Join(dir, "pulled"), clock: clock, inProgress: map[string]int{}}
	for _, d := range []string{r.pulling, r.pulled} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("open image pull records: %w", err)
		}
		checkpoint.Clean(d, log)
	}
	return r, nil
}

// begin writes the intent to pull an image. The caller must call end after the pull.
func (r *records) begin(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	intent := kubelet.ImagePullIntent{TypeMeta: typeMeta("ImagePullIntent"), Image: image}
	if err := save(r.pulling, image, intent); err != nil {
		return fmt.Errorf("record image pull intent: %w", err)
	}
	r.inProgress[image]++
	return nil
}

// end deletes the intent once no pull of the image is in progress.
func (r *records) end(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inProgress[image]--; r.inProgress[image] > 0 {
		return nil
	}
	delete(r.inProgress, image)
	return checkpoint.Remove(filepath.Join(r.pulling, recordFileName(image)))
}

// hasIntent reports whether there is an intent for one of the names: a pull in progress, or one
// that was interrupted.
func (r *records) hasIntent(names ...string) (bool, error) {
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

// find returns the record of an image by the runtime's reference; nil if there is none.
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

// add adds a grant for an image under this name (without tag and digest). It replaces a record
// that it cannot read.
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
		return fmt.Errorf("record image pull: %w", err)
	}
	return nil
}

// prune deletes the records of removed images: those not among the given references, unless
// written after the given time. It deletes unreadable records too.
func (r *records) prune(remaining []string, before time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = before.Truncate(time.Second) // as the times in records
	keep := map[string]bool{}
	for _, ref := range remaining {
		keep[recordFileName(ref)] = true
	}
	files, err := os.ReadDir(r.pulled)
	if err != nil {
		return fmt.Errorf("prune image pull records: %w", err)
	}
	var failures []error
	for _, f := range files {
		path := filepath.Join(r.pulled, f.Name())
		var record kubelet.ImagePulledRecord
		data, err := os.ReadFile(path)
		fresh := err == nil && json.Unmarshal(data, &record) == nil && !record.LastUpdatedTime.Time.Before(before)
		if !keep[f.Name()] && !fresh {
			failures = append(failures, checkpoint.Remove(path))
		}
	}
	return errors.Join(failures...)
}

// count returns the number of intents and records; zero for a directory that it cannot read.
func (r *records) count() (intents, records int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	inProgress, _ := os.ReadDir(r.pulling)
	done, _ := os.ReadDir(r.pulled)
	return len(inProgress), len(done)
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: kubelet.SchemeGroupVersion.String()}
}

// recordFileName returns the file name for an image name or reference, which may contain slashes.
func recordFileName(subject string) string {
	return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(subject)))
}

func save(dir, subject string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return checkpoint.Replace(filepath.Join(dir, recordFileName(subject)), append(data, '\n'), 0o600)
}

func load(dir, subject string, into any) error {
	path := filepath.Join(dir, recordFileName(subject))
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
