// Reads a published log with the packages of golang.org/x/mod that read Go's own checksum database, and with nothing of
// ours: the checkpoint's signature, every tile, and the proof of every entry that is asked for.
//
//	read-log-in-go DIR KEY INDEX...
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8 // of a tile: 256 hashes

type directory struct{ path string }

func (d directory) Height() int { return height }

func (d directory) SaveTiles([]tlog.Tile, [][]byte) {}

// tlog-tiles has no height in its paths, and an index in groups of three digits, as the package writes it.
func (d directory) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		path := strings.Replace(tile.Path(), fmt.Sprintf("tile/%d/", height), "tile/", 1)
		data, err := os.ReadFile(filepath.Join(d.path, path))
		if os.IsNotExist(err) && tile.W < 1<<height {
			full := tile
			full.W = 1 << height
			path = strings.Replace(full.Path(), fmt.Sprintf("tile/%d/", height), "tile/", 1)
			data, err = os.ReadFile(filepath.Join(d.path, path))
			if err == nil {
				data = data[:tile.W*tlog.HashSize]
			}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func (d directory) entry(index, size int64) ([]byte, error) {
	bundle := index / 256
	path := tlog.Tile{H: height, L: 0, N: bundle, W: 256}.Path()
	path = strings.Replace(path, fmt.Sprintf("tile/%d/0/", height), "tile/entries/", 1)
	if width := size - bundle*256; width < 256 {
		path = fmt.Sprintf("%s.p/%d", path, width)
	}
	data, err := os.ReadFile(filepath.Join(d.path, path))
	if err != nil {
		return nil, err
	}
	for i := int64(0); ; i++ {
		if len(data) < 2 {
			return nil, fmt.Errorf("%s ends early", path)
		}
		length := int(binary.BigEndian.Uint16(data))
		if len(data) < 2+length {
			return nil, fmt.Errorf("%s ends early", path)
		}
		if i == index%256 {
			return data[2 : 2+length], nil
		}
		data = data[2+length:]
	}
}

func run(path, key string, indexes []string) error {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return err
	}
	signed, err := os.ReadFile(filepath.Join(path, "checkpoint"))
	if err != nil {
		return err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return fmt.Errorf("not a checkpoint of %s", verifier.Name())
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return fmt.Errorf("%q is no root", lines[2])
	}
	tree := tlog.Tree{N: size, Hash: tlog.Hash(root)}
	log := directory{path}
	hashes := tlog.TileHashReader(tree, log) // checks every tile it reads against the root
	computed, err := tlog.TreeHash(size, hashes)
	if err != nil {
		return err
	}
	if !bytes.Equal(computed[:], root) {
		return fmt.Errorf("the tiles do not give the root that was signed")
	}
	for _, text := range indexes {
		index, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		entry, err := log.entry(index, size)
		if err != nil {
			return err
		}
		proof, err := tlog.ProveRecord(size, index, hashes)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(proof, size, tree.Hash, index, tlog.RecordHash(entry)); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
	}
	fmt.Printf("%s: %d entries, %d proven\n", verifier.Name(), size, len(indexes))
	return nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: read-log-in-go DIR KEY INDEX...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
