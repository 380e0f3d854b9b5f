package oom

import (
	"bytes"
	"strconv"
)

// record is one message of the kernel's log.
type record struct {
	sequence uint64 // counts from the machine's start
	text     string
}

// parseRecord reads what one read of /dev/kmsg gives: PRIORITY,SEQUENCE,TIME,FLAGS[,…];TEXT
// and, on further lines, names and values that belong to it. What a program wrote into the
// log is left out: it must not speak in the kernel's name.
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
	if err != nil || priority>>3 != 0 { // the lower three bits are how urgent it is
		return record{}, false
	}
	sequence, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return record{}, false
	}
	text, _, _ = bytes.Cut(text, []byte{'\n'})
	return record{sequence: sequence, text: string(text)}, true
}
