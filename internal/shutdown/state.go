package shutdown

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"swiftlet/internal/checkpoint"
)

// stateFile has the name and format of the reference kubelet's.
const stateFile = "graceful_node_shutdown_state"

// state has the times of the last shutdown. Ended is zero if it was interrupted.
type state struct {
	Began time.Time `json:"startTime"`
	Ended time.Time `json:"endTime"`
}

func (s state) save(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode shutdown state: %w", err)
	}
	return checkpoint.Replace(path, data, 0o600)
}

func loadState(path string) (s state, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("decode %s: %w", path, err)
	}
	return s, nil
}
