fn main() {
    // The library has a pthread_create too, which Rust would hide; ours stands before it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--allow-multiple-definition");
}
