// Arguments of the kernels, always at buffer 0. Go has the twin of every struct
// in metal/args.go; a test compares their layouts. What a model fixes and a
// kernel's loops turn on are function constants beside the kernel instead.

struct EmbedArgs {
  uint hidden;
};

struct NormArgs {
  uint width;
  float eps;
};

struct ProjectArgs {
  uint tiles;  // of four rows of the matrix
  uint each;   // tiles of a simdgroup, one after another
  float eps;
};

struct HeadArgs {
  uint vocab;
  uint each;  // tiles of a simdgroup, one after another
  float eps;
};

struct ArgmaxArgs {
  uint parts;
};

struct DeltaArgs {
  uint rows;
  uint width;  // of a projected row
  uint z, b, a;  // where they start in it; q, k and v at 0
  float eps;
};

struct ChunkArgs {
  uint first;   // sub-chunk of the list
  uint chunks;  // how many from there
};

struct PrepareArgs {
  uint rows;
  uint from;   // position of the first row
  uint width;  // of a projected row
  uint k, v;   // where they start in it; queries and their gates at 0
  uint half_rotary;  // pairs that rope turns
  float eps;
};

struct AttendArgs {
  uint rows;
  uint from;   // position of the first row
  uint width;  // of a projected row
  uint span;   // keys a span; decode only
  uint spans;
  float scale;
};

struct ExpertsArgs {
  uint experts;
  uint each;  // tiles of a simdgroup, one after another
  float eps;
};

struct RouteArgs {
  uint rows;
  uint experts;
  uint chosen;
  uint stride;  // of a row of logits
};

struct MatmulArgs {
  uint rows;
  uint columns;  // of the matrix, and of a row of x
  uint outputs;  // rows of the matrix
};

struct GroupedArgs {
  uint columns;
  uint outputs;
  uint chosen;  // entries a row of x, or 1 where x has a row for each entry
};

struct CombineArgs {
  uint rows;
  uint hidden;
  uint chosen;
};

struct CopyArgs {
  uint count;  // of 16 bytes
  uint each;   // values of a thread
};
