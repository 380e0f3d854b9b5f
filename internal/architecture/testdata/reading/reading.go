// Package reading has reads with and without a bound, for TestUnboundedReads. Lines that must be found end
// with want.
package reading

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

var read = os.ReadFile // want

func files(system fs.FS) {
	_, _ = os.ReadFile("x")         // want
	_, _ = fs.ReadFile(system, "x") // want
	root, _ := os.OpenRoot("/")
	_, _ = root.ReadFile("x") // want
}

func streams(r io.Reader, w http.ResponseWriter, request *http.Request) {
	_, _ = io.ReadAll(r)            // want
	_, _ = io.ReadAll(request.Body) // want
	_, _ = io.ReadAll(io.LimitReader(r, 5))
	_, _ = io.ReadAll(http.MaxBytesReader(w, request.Body, 5))
	_, _ = io.ReadAll(&io.LimitedReader{R: r, N: 5})
	_, _ = io.ReadAll(strings.NewReader("x"))
	_, _ = io.ReadAll(bufio.NewReader(strings.NewReader("x")))
	_, _ = io.ReadAll(bufio.NewReader(r)) // want
	all := io.ReadAll                     // want
	_, _ = all(r)
	var b bytes.Buffer
	_, _ = b.ReadFrom(r)  // want
	_, _ = io.Copy(&b, r) // want
	_, _ = io.Copy(w, &b)
	_, _ = io.CopyN(&b, r, 5)
	var text strings.Builder
	_, _ = io.Copy(&text, r) // want
}

func lines(r io.Reader) {
	_ = bufio.NewScanner(r) // want
	_ = bufio.NewScanner(io.LimitReader(r, 5))
	buffered := bufio.NewReader(r)
	_, _ = buffered.ReadString('\n') // want
	_, _ = buffered.ReadBytes('\n')  // want
	_, _, _ = buffered.ReadLine()
	_, _ = buffered.ReadSlice('\n')
}

func documents(r io.Reader, request *http.Request) {
	_ = json.NewDecoder(r).Decode(nil)            // want
	_ = json.NewDecoder(request.Body).Decode(nil) // want
	_ = json.NewDecoder(bytes.NewReader(nil)).Decode(nil)
}

func programs() {
	cmd := exec.Command("x")
	_, _ = cmd.Output()         // want
	_, _ = cmd.CombinedOutput() // want
	var out bytes.Buffer
	cmd.Stdout = &out                         // want
	cmd.Stdout, cmd.Stderr = io.Discard, &out // want
	cmd.Stderr = os.Stderr
	_ = &exec.Cmd{Stdout: &out} // want
	_ = &exec.Cmd{Stdout: io.Discard}
}
