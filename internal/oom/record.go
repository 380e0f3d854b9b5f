package oom

import (
	"bytes"
	"strconv"
)

// record is one message of the kernel log.
type record struct {
	sequence uint64 // since boot
	text     string
}

// parseRecord parses the result of one read of /dev/kmsg: PRIORITY,SEQUENCE,TIME,FLAGS[,…];TEXT
// and, on further lines, key-value pairs. It rejects records that user space wrote, which could
// imitate the kernel.
func parseRecord(data []byte) (record, bool) {
	head, text, found := bytes.Cut(data, []byte{';'})
	if !found {
		return record{}, false
	}
	fields := bytes.SplitN(head, []byte{','}, 3)
	if len(fields) < 3 {
		return record{}, false
	}
	priority, err := strconv.ParseUint(string(fields[0]), 10, 32)
	if err != nil || priority>>3 != 0 { // the lower three bits are the level, the others the facility
		return record{}, false
	}
	sequence, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return record{}, false
	}
	text, _, _ = bytes.Cut(text, []byte{'\n'})
	return record{sequence: sequence, text: string(text)}, true
}
