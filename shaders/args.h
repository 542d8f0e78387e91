// Arguments of the kernels, always at buffer 0. Go has the twin of every struct
// in metal/args.go; a test compares their layouts.

struct EmbedArgs {
  uint hidden;
};
