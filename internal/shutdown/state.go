package shutdown

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"swiftlet/internal/checkpoint"
)

// stateFile is the reference kubelet's.
const stateFile = "graceful_node_shutdown_state"

// state is when the last shutdown began and ended.
type state struct {
	Began time.Time `json:"startTime"`
	Ended time.Time `json:"endTime"`
}

func (s state) save(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return checkpoint.Replace(path, data, 0o600)
}

func loadState(path string) (s state, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}
