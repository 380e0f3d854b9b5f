package content

import (
	"cmp"
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/atomicdir"
)

// ErrNoDefaultMode is returned for a pod whose volume was not defaulted.
var ErrNoDefaultMode = errors.New("no defaultMode used, not even the default value for it")

// Keys maps the keys of an object to files.
type Keys struct {
	// Items selects keys, paths, modes and users; none means every key with its own name.
	Items       []v1.KeyToPath
	DefaultMode *int32
	// DefaultUser owns the files of items without a user, nil for root.
	DefaultUser *int64
	// Optional skips keys that the object does not have.
	Optional bool
	// Missing is the error for a key that the object does not have.
	Missing func(key string) error
}

// Select turns an object's data into files.
func (k Keys) Select(data map[string][]byte) (atomicdir.Payload, error) {
	if k.DefaultMode == nil {
		return nil, ErrNoDefaultMode
	}
	payload := atomicdir.Payload{}
	if len(k.Items) == 0 {
		for key, value := range data {
			payload[key] = atomicdir.File{Data: value, Mode: *k.DefaultMode, Owner: k.DefaultUser}
		}
		return payload, nil
	}
	for _, item := range k.Items {
		value, ok := data[item.Key]
		if !ok {
			if k.Optional {
				continue
			}
			return nil, k.Missing(item.Key)
		}
		mode := *k.DefaultMode
		if item.Mode != nil {
			mode = *item.Mode
		}
		payload[item.Path] = atomicdir.File{Data: value, Mode: mode, Owner: cmp.Or(item.User, k.DefaultUser)}
	}
	return payload, nil
}
