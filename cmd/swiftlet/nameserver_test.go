package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
)

// nameServer is the variable with the address of the name server that the test binary is, instead of tests.
const nameServer = "SWIFTLET_TEST_NAMESERVER"

func TestMain(m *testing.M) {
	if address := os.Getenv(nameServer); address != "" {
		fmt.Fprintln(os.Stderr, serveNames(address))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// outside is what serveNames says every name is.
var outside = net.IPv4(198, 51, 100, 9).To4()

// serveNames is a name server of the world outside.
func serveNames(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for query := make([]byte, 512); ; {
		n, from, err := conn.ReadFrom(query)
		if err != nil {
			return err
		}
		answer, err := answerName(query[:n])
		if err != nil {
			continue // not a query
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			return err
		}
	}
}

// answerName returns an answer with the address to a query for one, without a record to others.
func answerName(query []byte) ([]byte, error) {
	const header, pointer, typeA, classIN, ttl = 12, 0xc000, 1, 1, 1
	end := header
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the last label, type and class
	if end > len(query) {
		return nil, errors.New("incomplete question")
	}
	answer := append([]byte{query[0], query[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	if binary.BigEndian.Uint16(query[end-4:]) != typeA {
		return answer, nil
	}
	answer[7] = 1 // answers
	for _, field := range []uint16{pointer | header, typeA, classIN, 0, ttl, uint16(len(outside))} {
		answer = binary.BigEndian.AppendUint16(answer, field)
	}
	return append(answer, outside...), nil
}
