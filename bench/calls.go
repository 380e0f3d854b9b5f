package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"swiftlet/test/bed"
)

// callPods is the number of pods whose calls are counted.
const callPods = 20

// numberOfCalls counts what a kubelet asks of its runtime and of the API server. A recorder between
// kubelet and runtime and the audit log cost time, so this is a run of its own.
func numberOfCalls(ctx context.Context, t *trial) (err error) {
	k := t.kubelet()
	file := filepath.Join(t.cluster.bed.Logs(), k.box.Name()+".bench.calls.jsonl")
	if err := k.restart(ctx, bed.KubeletOptions{Calls: file}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, k.restart(context.WithoutCancel(ctx), bed.KubeletOptions{}))
	}()
	if err := sleep(ctx, 10*time.Second); err != nil {
		return err
	}
	count := func(name string, per float64, act func() error) error {
		criBefore, apiBefore, err := t.callsSoFar(file)
		if err != nil {
			return err
		}
		if err := act(); err != nil {
			return err
		}
		cri, api, err := t.callsSoFar(file)
		if err != nil {
			return err
		}
		t.record("cri_calls_"+name, float64(cri-criBefore)/per)
		t.record("api_calls_"+name, float64(api-apiBefore)/per)
		return nil
	}
	pods := newPods("counted", t.number(callPods))
	const after = 3 * time.Second // what follows a start or an end, such as events
	err = count("start", float64(len(pods)), func() error {
		_, err := k.start(ctx, pods)
		return errors.Join(err, sleep(ctx, after))
	})
	if err != nil {
		return err
	}
	if err := count("idle", t.window(time.Minute).Minutes(), func() error { return sleep(ctx, t.window(time.Minute)) }); err != nil {
		return err
	}
	return count("delete", float64(len(pods)), func() error {
		_, err := k.delete(ctx, pods)
		return errors.Join(err, sleep(ctx, after))
	})
}

// callsSoFar returns the number of calls to the runtime and to the API server.
func (t *trial) callsSoFar(recorded string) (cri, api int, err error) {
	if cri, err = countCRI(recorded); err != nil {
		return 0, 0, err
	}
	api, err = countAPI(t.cluster.bed.ControlPlane.AuditLog(), "system:node:"+t.kubelet().box.Name())
	return cri, api, err
}

// countCRI counts the recorded calls. The event stream has a line per event, and is not a call.
func countCRI(file string) (int, error) {
	count := 0
	err := eachLine(file, func(line []byte) error {
		var call struct{ Method string }
		if err := json.Unmarshal(line, &call); err != nil {
			return err
		}
		if call.Method != "GetContainerEvents" {
			count++
		}
		return nil
	})
	return count, err
}

// countAPI counts the requests of a user in an audit log. A watch has a line when it begins and one
// when it ends.
func countAPI(file, user string) (int, error) {
	seen := map[string]bool{}
	err := eachLine(file, func(line []byte) error {
		var entry struct {
			AuditID string
			User    struct{ Username string }
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			return err
		}
		if entry.User.Username == user {
			seen[entry.AuditID] = true
		}
		return nil
	})
	return len(seen), err
}

// eachLine calls f with every complete line of a file.
func eachLine(file string, f func([]byte) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("count calls: %w", err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil
		}
		if err := f(line); err != nil {
			return fmt.Errorf("count calls in %s: %w", file, err)
		}
	}
	return nil
}
